//! Lines with a checksum: the last field of a record is the hash of everything before it; and hashes of sources.

use crate::wire::RunLine;

/// The bytes between a record and its checksum.
const SUM_START: &[u8] = b",\"sum\":\"";

/// Hexadecimal digits of a checksum.
const SUM_DIGITS: usize = 16;

/// The bytes after the checksum.
const SUM_END: &[u8] = b"\"}";

/// Returns a record as a journal line with its line end: its JSON, with a last field `sum` that holds the
/// first digits of the BLAKE3 hash of everything before that field.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn seal_record(line: &RunLine) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec(line)?;
    text.pop();
    let sum = compute_checksum(&text);
    text.extend_from_slice(SUM_START);
    text.extend_from_slice(sum.as_bytes());
    text.extend_from_slice(SUM_END);
    text.push(b'\n');
    Ok(text)
}

/// Returns the BLAKE3 hash of several texts in hexadecimal digits, such as those of a model and its included files.
pub fn sources_hash<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        // A length prefix makes the concatenation of texts unambiguous.
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn compute_checksum(record: &[u8]) -> String {
    blake3::hash(record).to_hex().chars().take(SUM_DIGITS).collect()
}

/// Checks the checksum of a line without its line end; `None` if the line has no checksum.
pub fn verify_checksum(line: &[u8]) -> Option<bool> {
    let line = line.strip_suffix(SUM_END)?;
    let (rest, sum) = line.split_at_checked(line.len().checked_sub(SUM_DIGITS)?)?;
    let record = rest.strip_suffix(SUM_START)?;
    Some(compute_checksum(record).as_bytes() == sum)
}
