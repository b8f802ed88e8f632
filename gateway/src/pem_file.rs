//! Files with certificates and keys, which somebody may have named wrongly.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::limits::PEM_FILE_BYTES;

/// # Errors
/// When it cannot be read, or has more than [`PEM_FILE_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(PEM_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PEM_FILE_BYTES {
        return Err(io::Error::other(format!("it is larger than {PEM_FILE_BYTES} bytes")));
    }
    Ok(bytes)
}
