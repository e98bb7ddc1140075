//! The pages of column chunks, one at a time, each granted before it is read.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::header::{NoHeader, PageHeader, PageKind, read_header};
use crate::Error;
use crate::input::Places;
use crate::source::pool::{Held, Pool, Share};

/// Headers are read in pieces of this size: they have some thirty bytes, a few hundred where they hold the
/// smallest and largest text.
const HEADER_BYTES: usize = 1 << 10;
/// A header beyond this is none.
const LONGEST_HEADER: usize = 16 << 20;

/// A file and the memory to read it in.
pub(super) struct PageFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub places: Arc<Places>,
    pub pool: Arc<Pool>,
    /// The budget, for what is too large for it.
    pub budget: u64,
    /// Why reading failed. The decoders in between hand errors on as text.
    failure: Mutex<Option<Failure>>,
}

/// Why reading pages ended early.
pub(super) enum Failure {
    /// The budget refused; with other memory freed it may work.
    Refused(Error),
    Final(Error),
}

impl PageFile {
    pub(super) fn new(places: Places, path: PathBuf, bytes: u64, pool: Arc<Pool>, budget: u64) -> PageFile {
        PageFile {
            path,
            bytes,
            places: Arc::new(places),
            pool,
            budget,
            failure: Mutex::new(None),
        }
    }

    /// What went wrong below the decoders, if anything did.
    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the first failure and returns what the decoders get to see instead.
    fn fail(&self, failure: Failure) -> ParquetError {
        let mut kept = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(failure);
        ParquetError::General("the page cannot be read".into())
    }

    fn fill(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        match self.places.fill_at(bytes, at) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ParquetError::EOF("the file ends within a page".into())),
            Err(error) => Err(self.fail(Failure::Final(error))),
        }
    }

    /// The header of the page at `at`, in a column chunk that goes to `end`.
    pub(super) fn header(&self, at: u64, end: u64) -> Result<PageHeader> {
        let mut size = HEADER_BYTES;
        loop {
            let length = (end.min(self.bytes).saturating_sub(at)).min(size as u64) as usize;
            let mut bytes = vec![0; length];
            self.fill(&mut bytes, at)?;
            match read_header(&bytes) {
                Ok(header) if header.length + header.compressed <= end - at => return Ok(header),
                Err(NoHeader::Cut) if length == size && size < LONGEST_HEADER => size *= 8,
                _ => return Err(ParquetError::General("a page header is broken".into())),
            }
        }
    }
}

/// Bytes of a column chunk read ahead: a page costs one read then, not two for its header and one for itself.
pub(super) const WINDOW_BYTES: u64 = 64 << 10;

/// One column chunk of a file.
pub(super) struct ChunkFile {
    file: Arc<PageFile>,
    end: u64,
    /// Where it starts, and what was read from there on.
    window: Mutex<(u64, Vec<u8>)>,
}

impl ChunkFile {
    fn header(&self, at: u64) -> Result<PageHeader> {
        let window = self.window_at(at, HEADER_BYTES as u64)?;
        match read_header(&window.1[(at - window.0) as usize..]) {
            Ok(header) if header.length + header.compressed <= self.end - at => Ok(header),
            _ => self.file.header(at, self.end),
        }
    }

    /// The window with `length` bytes from `at` on in it, or as many as the chunk has.
    fn window_at(&self, at: u64, length: u64) -> Result<MutexGuard<'_, (u64, Vec<u8>)>> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let end = (at + length).min(self.end);
        if at < window.0 || end > window.0 + window.1.len() as u64 {
            let length = (self.end.saturating_sub(at)).min(WINDOW_BYTES.max(length)) as usize;
            window.0 = at;
            window.1.resize(length, 0);
            self.file.fill(&mut window.1, at)?;
        }
        Ok(window)
    }
}

impl Length for ChunkFile {
    fn len(&self) -> u64 {
        self.end
    }
}

impl ChunkReader for ChunkFile {
    type T = Chain<Cursor<Vec<u8>>, BufReader<FileFrom>>;

    /// A header: what the window has of it, and the file behind.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let known = start
            .checked_sub(window.0)
            .and_then(|skip| window.1.get(skip as usize..));
        let known = known.unwrap_or_default();
        let known = known[..known.len().min(HEADER_BYTES)].to_vec();
        let rest = self.file.get_read(start + known.len() as u64)?;
        Ok(Cursor::new(known).chain(rest))
    }

    /// A page, which was granted: with the next header where it is large, from the window where it is small.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.end) {
            return Err(ParquetError::EOF("a page ends behind its column".into()));
        }
        if (length + HEADER_BYTES) as u64 <= WINDOW_BYTES {
            let window = self.window_at(start, (length + HEADER_BYTES) as u64)?;
            return Ok(Bytes::copy_from_slice(
                &window.1[(start - window.0) as usize..][..length],
            ));
        }
        let whole = (length + HEADER_BYTES).min((self.end - start) as usize);
        let mut bytes = vec![0; whole];
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let known = start
            .checked_sub(window.0)
            .and_then(|skip| window.1.get(skip as usize..));
        let known = known.unwrap_or_default();
        let known = &known[..known.len().min(whole)];
        bytes[..known.len()].copy_from_slice(known);
        self.file
            .fill(&mut bytes[known.len()..], start + known.len() as u64)?;
        window.0 = start + length as u64;
        window.1.clear();
        window.1.extend_from_slice(&bytes[length..]);
        bytes.truncate(length);
        Ok(bytes.into())
    }
}

impl Length for PageFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for PageFile {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let file = FileFrom {
            places: self.places.clone(),
            at: start,
        };
        Ok(BufReader::with_capacity(HEADER_BYTES, file))
    }

    /// The bytes of a page, for which [`GrantedPages`] asked, or of the footer, for which the opener did.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.bytes)
        {
            return Err(ParquetError::EOF("the file ends within a page".into()));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// The file from one place on.
pub(super) struct FileFrom {
    places: Arc<Places>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.places.read_at(bytes, self.at).map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The row groups that are still to be read.
pub(super) struct Groups {
    pub file: Arc<PageFile>,
    pub metadata: Arc<ParquetMetaData>,
    pub first: usize,
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| group.num_rows() as usize).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnChunks {
            file: self.file.clone(),
            metadata: self.metadata.clone(),
            column,
            next: self.first,
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups()[self.first..].iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of one column.
struct ColumnChunks {
    file: Arc<PageFile>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    next: usize,
}

impl Iterator for ColumnChunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.next)?;
        self.next += 1;
        let pages = GrantedPages::new(&self.file, group, self.next - 1, self.column);
        Some(pages.map(|pages| Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for ColumnChunks {}

/// The pages of one column chunk. The library reads and decompresses them; this asks for the memory before it does
/// and ties it to the page.
struct GrantedPages {
    file: Arc<PageFile>,
    chunk: Arc<ChunkFile>,
    inner: SerializedPageReader<ChunkFile>,
    column: String,
    group: usize,
    compression: Compression,
    of: Type,
    /// The header of the next page.
    at: u64,
    /// A dictionary that was passed over for now.
    deferred: Option<PageHeader>,
    /// Decoders keep a copy of the dictionary for as long as the chunk lasts.
    dictionary: Option<Arc<Share>>,
    values_left: u64,
}

impl GrantedPages {
    fn new(
        file: &Arc<PageFile>,
        group: &RowGroupMetaData,
        group_index: usize,
        column: usize,
    ) -> Result<GrantedPages> {
        let chunk = group.column(column);
        let (start, length) = chunk.byte_range();
        let chunk_file = Arc::new(ChunkFile {
            file: file.clone(),
            end: start + length,
            window: Mutex::default(),
        });
        Ok(GrantedPages {
            chunk: chunk_file.clone(),
            inner: SerializedPageReader::new(chunk_file, chunk, group.num_rows() as usize, None)?,
            file: file.clone(),
            column: chunk.column_descr().name().into(),
            group: group_index,
            compression: chunk.compression(),
            of: chunk.column_type(),
            at: start,
            deferred: None,
            dictionary: None,
            values_left: chunk.num_values() as u64,
        })
    }

    /// The header of the next page that is not an index; `None` at the end.
    fn header(&mut self) -> Result<Option<PageHeader>> {
        while self.at < self.chunk.end {
            let header = self.chunk.header(self.at)?;
            if header.page != PageKind::Other {
                return Ok(Some(header));
            }
            self.at += header.length + header.compressed;
        }
        Ok(None)
    }

    fn advance(&mut self, header: &PageHeader) -> Result<()> {
        self.at += header.length + header.compressed;
        let implausible = || ParquetError::General("a page has more values than its column".into());
        if header.page == PageKind::Data {
            self.values_left = self
                .values_left
                .checked_sub(header.values)
                .ok_or_else(implausible)?;
        }
        Ok(())
    }

    /// Asks for what reading a page takes: while it is decompressed, and afterwards.
    fn grant(&mut self, header: &PageHeader) -> Result<(Share, Share)> {
        let (mut working, mut kept) = match self.compression {
            Compression::UNCOMPRESSED => (0, header.compressed),
            // Its decoder has a buffer of the size of the page, and a window.
            Compression::BROTLI(_) => (header.compressed + 2 * header.uncompressed, header.uncompressed),
            _ => (header.compressed, header.uncompressed),
        };
        if header.page == PageKind::Dictionary {
            let least = match self.of {
                Type::BYTE_ARRAY => 4,
                Type::INT64 | Type::DOUBLE => 8,
                Type::INT96 => 12,
                Type::INT32 | Type::FLOAT => 4,
                _ => 1,
            };
            if header.values.saturating_mul(least) > header.uncompressed {
                return Err(ParquetError::General(
                    "a dictionary is shorter than its values".into(),
                ));
            }
            match self.of {
                // Sixteen bytes for where each text is.
                Type::BYTE_ARRAY => kept += 16 * header.values,
                // Copied, and the page given up then.
                _ => working += kept,
            }
        }
        let pool = self.file.pool.clone();
        let shares = pool
            .take(working)
            .and_then(|working| Ok((working, pool.take(kept)?)));
        shares.map_err(|_| self.too_large(header, working + kept))
    }

    fn too_large(&self, header: &PageHeader, bytes: u64) -> ParquetError {
        let what = match header.page {
            PageKind::Dictionary => "the dictionary",
            _ => "a page",
        };
        self.file.fail(Failure::Refused(Error::PieceTooLarge {
            path: self.file.path.clone(),
            format: "Parquet",
            place: format!("{what} of column {:?} in row group {}", self.column, self.group),
            bytes,
            budget: self.file.budget,
        }))
    }

    /// Names the place where a page could not be decoded.
    fn broken(&self, error: ParquetError) -> ParquetError {
        self.file.fail(Failure::Final(Error::Broken {
            path: self.file.path.clone(),
            format: "Parquet",
            place: format!(" in row group {}, column {:?}", self.group, self.column),
            source: Box::new(error),
        }))
    }

    fn read_page(&mut self) -> Result<Option<Page>> {
        let Some(header) = self.header()? else {
            return Ok(None);
        };
        let (working, kept) = self.grant(&header)?;
        let page = self.inner.get_next_page()?;
        drop(working);
        self.advance(&header)?;
        Ok(page.map(|page| self.tie(page, kept)))
    }

    fn read_deferred(&mut self) -> Result<Option<Page>> {
        let Some(header) = self.deferred.take() else {
            return Ok(None);
        };
        let (working, kept) = self.grant(&header)?;
        let page = self.inner.take_deferred_dictionary()?;
        drop(working);
        Ok(page.map(|page| self.tie(page, kept)))
    }

    fn skip(&mut self) -> Result<()> {
        let Some(header) = self.header()? else {
            return Ok(());
        };
        self.inner.skip_next_page()?;
        if header.page == PageKind::Dictionary {
            self.deferred = Some(header);
        }
        self.advance(&header)
    }

    /// The page, with its grant given back when nobody holds any of its bytes.
    fn tie(&mut self, mut page: Page, share: Share) -> Page {
        let share = Arc::new(share);
        if matches!(page, Page::DictionaryPage { .. }) {
            self.dictionary = Some(share.clone());
        }
        let (Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. }) =
            &mut page;
        let bytes = std::mem::take(buf);
        *buf = Bytes::from_owner(Held { bytes, share });
        page
    }
}

impl Iterator for GrantedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for GrantedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.read_page().map_err(|error| self.broken(error))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page().map_err(|error| self.broken(error))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.skip().map_err(|error| self.broken(error))
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.inner.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.read_deferred().map_err(|error| self.broken(error))
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner
            .at_record_boundary()
            .map_err(|error| self.broken(error))
    }
}
