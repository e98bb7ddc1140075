//! The framing of an Arrow IPC file: messages around buffers that are written as they stand in memory.
//!
//! Arrow's own writer takes a record batch of its own arrays and copies it once more; ours takes the slices that
//! there are. See "Serialization and Interprocess Communication" in the Arrow columnar format, 1.5.

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Block, Buffer, FieldNode, FooterBuilder, KeyValue, KeyValueArgs, MessageBuilder, MessageHeader,
    MetadataVersion, RecordBatchBuilder, root_as_message,
};
use flatbuffers::FlatBufferBuilder;

use super::layout::{Body, Layout};

/// The boundary that Arrow recommends for buffers.
pub(crate) const ALIGN: u64 = 64;

/// The most that stands before a body: a few hundred bytes, and a note that may name every column.
pub(crate) const MOST_HEADER_BYTES: u64 = 16 << 20;

const MAGIC: &[u8; 6] = b"ARROW1";
/// What every message begins with, before the length of its metadata.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The key of what we note beside a batch.
const NOTE: &str = "tidegate";

// Buffers go to the file as they are, and Arrow files are little-endian unless they say otherwise.
const _: () = assert!(cfg!(target_endian = "little"));

/// The beginning of a file: its mark and its schema.
pub(crate) fn opening(layout: &Layout) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &layout.schema());
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    message.add_bodyLength(0);
    let message = message.finish();
    builder.finish(message, None);
    let mut bytes = MAGIC.to_vec();
    bytes.resize(8, 0);
    frame(&mut bytes, builder.finished_data());
    bytes
}

/// What stands before the body of a batch.
pub(crate) fn header(body: &Body, n_rows: u64, note: Option<&str>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let buffers = body
        .buffers
        .iter()
        .map(|buffer| Buffer::new(buffer.at as i64, buffer.bytes as i64));
    let buffers: Vec<Buffer> = buffers.collect();
    let nodes: Vec<FieldNode> = body
        .lengths
        .iter()
        .map(|&n| FieldNode::new(n as i64, 0))
        .collect();
    let (buffers, nodes) = (builder.create_vector(&buffers), builder.create_vector(&nodes));
    let note = note.map(|note| {
        let args = KeyValueArgs {
            key: Some(builder.create_string(NOTE)),
            value: Some(builder.create_string(note)),
        };
        let pair = KeyValue::create(&mut builder, &args);
        builder.create_vector(&[pair])
    });
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(n_rows as i64);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    let batch = batch.finish();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_header(batch.as_union_value());
    message.add_bodyLength(body.bytes as i64);
    if let Some(note) = note {
        message.add_custom_metadata(note);
    }
    let message = message.finish();
    builder.finish(message, None);
    let mut bytes = Vec::new();
    frame(&mut bytes, builder.finished_data());
    bytes
}

/// What was noted beside a batch.
pub(crate) fn note(header: &[u8]) -> Option<&str> {
    let message = root_as_message(header.get(8..)?).ok()?;
    let notes = message.custom_metadata()?;
    let note = notes.iter().find(|pair| pair.key() == Some(NOTE))?;
    note.value()
}

/// The end of a file: where the batches stand, once more, for readers that know no index of ours.
pub(crate) fn closing(layout: &Layout, batches: impl Iterator<Item = Block>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let blocks: Vec<Block> = batches.collect();
    let blocks = builder.create_vector(&blocks);
    let none = builder.create_vector::<Block>(&[]);
    let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &layout.schema());
    let mut footer = FooterBuilder::new(&mut builder);
    footer.add_version(MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(none);
    footer.add_recordBatches(blocks);
    let footer = footer.finish();
    builder.finish(footer, None);
    let footer = builder.finished_data();
    // The end of the stream, for readers that take the file as one.
    let mut bytes = CONTINUATION.to_vec();
    bytes.extend_from_slice(&0i32.to_le_bytes());
    bytes.extend_from_slice(footer);
    bytes.extend_from_slice(&(footer.len() as i32).to_le_bytes());
    bytes.extend_from_slice(MAGIC);
    bytes
}

/// Appends a message, so that what follows stands on a boundary.
fn frame(bytes: &mut Vec<u8>, metadata: &[u8]) {
    let start = bytes.len();
    let end = (start + 8 + metadata.len()).next_multiple_of(ALIGN as usize);
    bytes.extend_from_slice(&CONTINUATION);
    bytes.extend_from_slice(&((end - start - 8) as i32).to_le_bytes());
    bytes.extend_from_slice(metadata);
    bytes.resize(end, 0);
}
