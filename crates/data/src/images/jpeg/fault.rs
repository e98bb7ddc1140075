//! Why a JPEG cannot be decoded.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("not a JPEG")]
    Foreign,
    /// More bytes are needed to know the header.
    #[error("ends within its header")]
    Short,
    #[error("ends too early: {percent}% of the picture is there")]
    Truncated { percent: u8 },
    #[error("broken at byte {at}: {what}")]
    Broken { at: usize, what: &'static str },
    #[error("unsupported: {0}")]
    Unsupported(&'static str),
    #[error("{width}×{height} pixels")]
    Absurd { width: u32, height: u32 },
}
