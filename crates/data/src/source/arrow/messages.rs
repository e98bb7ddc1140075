//! Where the messages of an Arrow file or stream are, and how large.

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, MessageHeader, MetadataVersion, RecordBatch, root_as_footer, root_as_message};
use arrow_schema::Schema;
use tidegate_memory::{Grant, Holder};

use super::super::columns::guarded;
use super::Trouble;
use crate::Result;
use crate::input::Places;

/// What the message at a place is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub block: Block,
    pub holds: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Dictionary { id: i64, delta: bool },
    Rows(u64),
}

impl Message {
    pub(super) fn bytes(&self) -> u64 {
        self.block.metaDataLength() as u64 + self.block.bodyLength() as u64
    }

    /// Reads all of it.
    pub(super) fn read(&self, places: &Places) -> Result<Buffer, Trouble> {
        let mut bytes = MutableBuffer::from_len_zeroed(self.bytes() as usize);
        match places.fill_at(bytes.as_slice_mut(), self.block.offset() as u64)? {
            true => Ok(bytes.into()),
            false => Err(cut()),
        }
    }

    /// What it takes once decompressed, told from its metadata and the lengths in its body; 0 where it is not
    /// compressed.
    pub(super) fn decompressed(&self, places: &Places) -> Result<u64, Trouble> {
        let (start, length) = (self.block.offset() as u64, self.block.metaDataLength() as u64);
        let mut metadata = vec![0; length as usize];
        places.fill_at(&mut metadata, start)?;
        let body = self.block.bodyLength() as u64;
        decompressed(&metadata, body, |at| {
            let mut prefix = [0; 8];
            Ok((at + 8 <= body && places.fill_at(&mut prefix, start + length + at)?).then_some(prefix))
        })
    }
}

/// A file or stream, message by message.
pub(super) struct Messages {
    pub schema: Schema,
    pub version: MetadataVersion,
    /// In the order in which they are to be read.
    pub all: Vec<Message>,
    /// For the list itself.
    pub grant: Grant,
}

impl Messages {
    pub(super) fn list(places: &Places, file_bytes: u64, holder: &Holder) -> Result<Messages, Trouble> {
        let mut magic = [0; 6];
        let named = places.fill_at(&mut magic, 0)? && magic == *b"ARROW1";
        let finder = Finder {
            places,
            file_bytes,
            holder,
        };
        if named { finder.file() } else { finder.stream() }
    }
}

fn cut() -> Trouble {
    Trouble::Broken("it ends within a message".into())
}

struct Finder<'f> {
    places: &'f Places,
    file_bytes: u64,
    holder: &'f Holder,
}

impl Finder<'_> {
    /// The messages that the footer of a file lists: dictionaries first, as its readers take them.
    fn file(&self) -> Result<Messages, Trouble> {
        let mut tail = [0; 10];
        let at = self.file_bytes.checked_sub(10).ok_or_else(cut)?;
        self.places.fill_at(&mut tail, at)?;
        let length = read_footer_length(tail)? as u64;
        let start = at.checked_sub(length).ok_or_else(cut)?;
        let (footer, _grant) = self.bytes(start, length)?;
        let footer = root_as_footer(&footer).map_err(|error| Trouble::Broken(error.to_string()))?;
        let schema = footer.schema().ok_or_else(cut)?;
        let mut messages = Messages {
            schema: guarded(|| try_fb_to_schema(schema))?,
            version: footer.version(),
            all: Vec::new(),
            grant: self.holder.try_grant(0)?,
        };
        let dictionaries = footer.dictionaries().into_iter().flatten();
        for block in dictionaries.chain(footer.recordBatches().into_iter().flatten()) {
            let (offset, length) = (
                u64::try_from(block.offset()),
                u64::try_from(block.metaDataLength()),
            );
            let (Ok(offset), Ok(length)) = (offset, length) else {
                return Err(cut());
            };
            self.add(&mut messages, offset, length)?;
        }
        Ok(messages)
    }

    /// The messages of a stream, one after another.
    fn stream(&self) -> Result<Messages, Trouble> {
        let mut at = 0;
        let (prefix, length) = self.prefix(at)?.ok_or_else(cut)?;
        let (bytes, _grant) = self.bytes(prefix, length)?;
        let message = root_as_message(&bytes).map_err(|error| Trouble::Broken(error.to_string()))?;
        let schema = message.header_as_schema().ok_or_else(cut)?;
        let mut messages = Messages {
            schema: guarded(|| try_fb_to_schema(schema))?,
            version: message.version(),
            all: Vec::new(),
            grant: self.holder.try_grant(0)?,
        };
        at = prefix + length;
        while let Some((start, length)) = self.prefix(at)? {
            at = self.add(&mut messages, at, start - at + length)?;
        }
        Ok(messages)
    }

    /// Where the metadata of the message at `at` starts, and its length; `None` at the end of the stream.
    fn prefix(&self, at: u64) -> Result<Option<(u64, u64)>, Trouble> {
        let mut bytes = [0; 8];
        let room = self.file_bytes.saturating_sub(at).min(8) as usize;
        self.places.fill_at(&mut bytes[..room], at)?;
        let number = |bytes: &[u8]| u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        // Before version 0.15 there was no marker in front of the length.
        let (start, length) = match bytes[..4] == [0xff; 4] {
            true => (at + 8, number(&bytes[4..])),
            false => (at + 4, number(&bytes)),
        };
        Ok((length > 0).then_some((start, length)))
    }

    /// Takes in the message at `offset`, whose metadata has `length` bytes with what stands before it. Returns where
    /// it ends.
    fn add(&self, messages: &mut Messages, offset: u64, length: u64) -> Result<u64, Trouble> {
        let (bytes, _grant) = self.bytes(offset, length)?;
        let marked = bytes.starts_with(&[0xff; 4]);
        let metadata = bytes.get(if marked { 8 } else { 4 }..).ok_or_else(cut)?;
        let message = root_as_message(metadata).map_err(|error| Trouble::Broken(error.to_string()))?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| cut())?;
        let end = (offset + length)
            .checked_add(body)
            .filter(|end| *end <= self.file_bytes);
        let end = end.ok_or_else(cut)?;
        let holds = match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(cut)?;
                let rows = u64::try_from(batch.length()).ok().filter(|rows| *rows < 1 << 40);
                Holds::Rows(
                    rows.ok_or_else(|| Trouble::Broken("a batch has an absurd number of rows".into()))?,
                )
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch().ok_or_else(cut)?;
                Holds::Dictionary {
                    id: batch.id(),
                    delta: batch.isDelta(),
                }
            }
            other => return Err(Trouble::Broken(format!("a message holds {other:?}"))),
        };
        let (offset, length) = (i64::try_from(offset), i32::try_from(length));
        let (Ok(offset), Ok(length)) = (offset, length) else {
            return Err(cut());
        };
        messages.grant.try_grow(size_of::<Message>() as u64)?;
        messages.all.push(Message {
            block: Block::new(offset, length, body as i64),
            holds,
        });
        Ok(end)
    }

    fn bytes(&self, at: u64, length: u64) -> Result<(Vec<u8>, Grant), Trouble> {
        if at.checked_add(length).is_none_or(|end| end > self.file_bytes) {
            return Err(cut());
        }
        let grant = self.holder.try_grant(length)?;
        let mut bytes = vec![0; length as usize];
        self.places.fill_at(&mut bytes, at)?;
        Ok((bytes, grant))
    }
}

/// The bytes that the buffers of a message take once decompressed: each says so in its first eight, which `read`
/// fetches from a place in the body; 0 where nothing is compressed. Refuses buffers that are not within the body. The
/// metadata comes with what stands before it.
pub(super) fn decompressed(
    metadata: &[u8],
    body_bytes: u64,
    mut read: impl FnMut(u64) -> Result<Option<[u8; 8]>>,
) -> Result<u64, Trouble> {
    let broken = || Trouble::Broken("a buffer is not within its message".into());
    let marked = metadata.starts_with(&[0xff; 4]);
    let metadata = metadata.get(if marked { 8 } else { 4 }..).ok_or_else(broken)?;
    let parsed = root_as_message(metadata).map_err(|error| Trouble::Broken(error.to_string()))?;
    let batch: Option<RecordBatch> = match parsed.header_as_dictionary_batch() {
        Some(dictionary) => dictionary.data(),
        None => parsed.header_as_record_batch(),
    };
    let batch = batch.ok_or_else(broken)?;
    let mut sum = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let (at, length) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
        let (Ok(at), Ok(length)) = (at, length) else {
            return Err(broken());
        };
        if at.checked_add(length).is_none_or(|end| end > body_bytes) {
            return Err(broken());
        }
        if batch.compression().is_some() && length > 0 {
            // -1 stands for a buffer that is not compressed.
            let length = i64::from_le_bytes(read(at)?.ok_or_else(broken)?).max(0);
            sum = sum.saturating_add(length as u64);
        }
    }
    Ok(sum)
}
