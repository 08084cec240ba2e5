//! Places in a source text.

/// A place in the source text that an item was read from.
///
/// Two spans always compare equal, so that a test read back from its printed form equals the test it was printed from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Byte offset of the first character.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
    /// Line, counted from 1; 0 for an item that was never in a text.
    pub line: u32,
    /// Column in characters, counted from 1; 0 for an item that was never in a text.
    pub column: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

impl std::hash::Hash for Span {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}
