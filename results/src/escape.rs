//! Escaping of untrusted text for terminals: no output character moves the cursor, sets a colour or changes
//! the text direction.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes `text` for one line: control characters and invisible formatting characters become `\u{…}`.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape_unless(text, |_| false)
}

/// Escapes a text of several lines: line ends and tabs are unchanged.
pub fn escape_block(text: &str) -> Cow<'_, str> {
    escape_unless(text, |c| matches!(c, '\n' | '\t'))
}

fn escape_unless(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| needs_escape(c) && !is_kept(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if needs_escape(c) && !is_kept(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Percent-encodes the bytes of a text that are not `is_kept`.
pub fn percent_encode(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns true for characters with an effect instead of a glyph: terminal controls, Unicode controls for
/// lines, direction and joining, tags, and noncharacters that XML forbids.
pub fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00ad}'
                | '\u{061c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let cases = [
            ("MP+rel-acq", "MP+rel-acq"),
            ("é ∀ 日本", "é ∀ 日本"),
            ("\u{1b}[31mred", r"\u{1b}[31mred"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("a\r\nb\tc", r"a\u{d}\u{a}b\u{9}c"),
            ("\u{202e}desrever", r"\u{202e}desrever"),
            ("bell\u{7}\u{7f}\0", r"bell\u{7}\u{7f}\u{0}"),
        ];
        for (text, shown) in cases {
            assert_eq!(escape_line(text), shown);
        }
        assert_eq!(escape_block("a\n\tb\u{1b}c"), "a\n\tb\\u{1b}c");
    }
}
