//! Text that others wrote, such as names of tests and files, made harmless for a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The text on one line, with everything that a terminal would act upon written out: control characters (line ends and
/// tabs too) and what changes the direction of writing become `\u{1b}` and the like.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same for a text of several lines: line ends and tabs stay.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let acts = |c: char| is_active(c) && !stays(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal may act upon a character instead of showing it.
pub fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_upon_is_written_out() {
        let cases = [
            ("mp/MP+rel-acq.wg", "mp/MP+rel-acq.wg"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("title\u{1b}]0;x\u{7}", "title\\u{1b}]0;x\\u{7}"),
            ("c1\u{9b}31m", "c1\\u{9b}31m"),
            ("back\u{8}\r\n", "back\\u{8}\\u{d}\\u{a}"),
            ("right\u{202e}left", "right\\u{202e}left"),
            ("größe→", "größe→"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected);
        }
        assert_eq!(shown_lines("a\n\tb\u{1b}c\n"), "a\n\tb\\u{1b}c\n");
    }
}
