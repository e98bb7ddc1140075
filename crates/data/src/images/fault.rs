//! Why a file of an image cannot be used.

use tidegate_memory::format_bytes;

use super::jpeg;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum PictureFault {
    #[error("the file is empty")]
    Empty,
    #[error("is none of JPEG, PNG, WebP, BMP, GIF and TIFF, whatever its name says")]
    NotAPicture,
    #[error("ends within its header")]
    CutOff,
    #[error("has no pixels")]
    NoPixels,
    #[error("{0}")]
    Jpeg(#[from] jpeg::Fault),
    #[error("the {format} data is broken: {what}")]
    Broken { format: &'static str, what: String },
    #[error("this kind of {format} cannot be read: {what}")]
    Unsupported { format: &'static str, what: String },
    #[error("{width}×{height} pixels take {} to decode, and there is room for {}", format_bytes(*needs), format_bytes(*room))]
    TooLarge {
        width: u32,
        height: u32,
        needs: u64,
        room: u64,
    },
    #[error("could not be decoded when it was packed")]
    NotPacked,
    #[error("there was no room to decode it when it was packed")]
    TooLargeToPack,
    #[error("there is no such file")]
    NotFound,
    #[error("is no file")]
    NoFile,
    #[error("cannot be read: {0}")]
    Unreadable(String),
}
