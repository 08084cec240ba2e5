//! Contents in recordings: files named by the hash of what they hold, compressed with zlib.

use std::path::Path;

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// The extension of a file of contents.
pub const EXTENSION: &str = "z";
/// The extension of one that is not compressed yet.
pub const RAW_EXTENSION: &str = "bin";
/// Upper bound on the bytes of contents.
const MAX_BYTES: usize = 1 << 30;
/// The fastest level, which most contents need no more than.
const LEVEL: u8 = 1;

/// Returns the FNV-1a hash of bytes, as the recording layer writes it.
pub fn hash_contents(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Compresses a file next to it, and removes it.
///
/// # Errors
/// If a file cannot be read or written.
pub fn compress_file(path: &Path) -> std::io::Result<()> {
    let compressed = compress_to_vec_zlib(&std::fs::read(path)?, LEVEL);
    std::fs::write(path.with_extension(EXTENSION), compressed)?;
    std::fs::remove_file(path)
}

/// Returns the contents that the bytes of a file hold; other files hold what they are.
///
/// # Errors
/// If a file of contents does not have the hash that it is named by.
pub fn unpack_contents(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return Ok(bytes);
    }
    let contents = decompress_to_vec_zlib_with_limit(&bytes, MAX_BYTES).ok();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let whole = contents.filter(|contents| hash_contents(contents) == name);
    whole.ok_or_else(|| {
        format!(
            "{}: damaged: its contents do not have the hash in its name; record the program again",
            path.display()
        )
    })
}
