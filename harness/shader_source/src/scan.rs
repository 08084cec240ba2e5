//! Scans shader sources for comments, identifiers and directives, without a grammar.

use std::ops::Range;

/// Replaces comments by blanks. Line ends and string literals are unchanged, and so are the offsets of all bytes.
pub fn blank_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let blank = |next: char| if next == '\n' { "\n" } else { &"    "[..next.len_utf8()] };
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match (next, rest.peek()) {
            ('/', Some('/')) => {
                plain.push(' ');
                while let Some(next) = rest.next_if(|next| *next != '\n') {
                    plain.push_str(blank(next));
                }
            }
            ('/', Some('*')) => {
                rest.next();
                plain.push_str("  ");
                let mut last = ' ';
                for next in rest.by_ref() {
                    plain.push_str(blank(next));
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
            }
            ('"', _) => {
                plain.push('"');
                // A string literal ends with its line: an apostrophe or quote in an inactive block does not
                // open one.
                while let Some(next) = rest.next_if(|next| *next != '\n') {
                    plain.push(next);
                    match next {
                        '\\' => plain.extend(rest.next_if(|next| *next != '\n')),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            _ => plain.push(next),
        }
    }
    plain
}

/// Returns true for characters of identifiers.
pub fn is_identifier_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the identifiers and numbers of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_identifier_character(c)).filter(|word| !word.is_empty())
}

/// Returns true if an identifier occurs in a text.
pub fn has_word(text: &str, word: &str) -> bool {
    words(text).any(|other| other == word)
}

/// Returns true if a text has an identifier followed by a parenthesis, as in a function call.
pub fn has_call(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !is_identifier_character(c))
            && text[at + name.len()..].trim_start().starts_with('(')
    })
}

/// Returns the argument of a preprocessor directive if a line has the directive `name`.
pub fn directive_argument<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix(name)?;
    if rest.starts_with(is_identifier_character) { None } else { Some(rest.trim()) }
}

/// Returns the bytes of a line without its indentation and end; `line` counts from 1.
///
/// A line past the end gives an empty range at the end of the text.
pub fn line_range(text: &str, line: usize) -> Range<usize> {
    let mut start = 0;
    for (number, content) in text.split_inclusive('\n').enumerate() {
        if number + 1 == line {
            let indentation = content.len() - content.trim_start().len();
            let end = start + content.trim_end().len();
            return (start + indentation).min(end)..end;
        }
        start += content.len();
    }
    text.len()..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("/* µ */ a // µ", "         a      "),
            ("a/* b\n* */c", "a    \n    c"),
            ("\"// no\" // yes", "\"// no\"       "),
            ("a / b \" open\n// c\nd", "a / b \" open\n    \nd"),
            ("/*/ still */x", "            x"),
        ];
        for (text, expected) in cases {
            assert_eq!(blank_comments(text), expected, "{text}");
        }
    }

    #[test]
    fn a_directive_has_its_whole_name() {
        let cases = [
            ("#include \"a.h\"", "include", Some("\"a.h\"")),
            ("  #  version 450", "version", Some("450")),
            ("#versions 450", "version", None),
            ("version 450", "version", None),
        ];
        for (line, name, expected) in cases {
            assert_eq!(directive_argument(line, name), expected, "{line}");
        }
    }

    #[test]
    fn positions_of_lines() {
        let text = "one\n  zwei 🦀x = 1\r\n\nlast";
        assert_eq!(&text[line_range(text, 2)], "zwei 🦀x = 1");
        assert_eq!(line_range(text, 3).len(), 0);
        assert_eq!(&text[line_range(text, 4)], "last");
        assert_eq!(line_range(text, 9), text.len()..text.len());
    }
}
