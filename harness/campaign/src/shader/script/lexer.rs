//! Words and lines of a script, with their places.

use super::{ScriptError, ScriptProblem};

/// Reads words, which white space separates; `#` starts a comment.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// The byte after the last word.
    at: usize,
    /// The start of the last word.
    start: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0, start: 0 }
    }

    /// Returns the next word.
    pub fn next_word(&mut self) -> Option<&'t str> {
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += rest.len() - rest.trim_start().len();
            let rest = rest.trim_start();
            if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            let word = &rest[..rest.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(rest.len())];
            if word.is_empty() {
                return None;
            }
            (self.start, self.at) = (self.at, self.at + word.len());
            // A backslash continues a line.
            if word != "\\" {
                return Some(word);
            }
        }
    }

    /// Returns the next word without reading it.
    pub fn peek(&self) -> Option<&'t str> {
        self.clone().next_word()
    }

    /// Reads a word if it is the next one.
    pub fn take_if(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        if is_next {
            self.next_word();
        }
        is_next
    }

    /// Reads a word.
    ///
    /// # Errors
    /// If the script ends.
    pub fn word(&mut self, expected: &'static str) -> Result<&'t str, ScriptError> {
        match self.next_word() {
            Some(word) => Ok(word),
            None => {
                self.start = self.text.len();
                Err(self.error(ScriptProblem::Ended(expected)))
            }
        }
    }

    /// Reads one certain word.
    ///
    /// # Errors
    /// If another one follows.
    pub fn expect(&mut self, word: &'static str) -> Result<(), ScriptError> {
        let found = self.word(word)?;
        if found == word { Ok(()) } else { Err(self.unexpected(word)) }
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If no decimal or hexadecimal number follows, or it is too large.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, ScriptError> {
        let word = self.word("a number")?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| self.unexpected("a number"))
    }

    /// Returns the following words that start like numbers.
    pub fn numbers(&mut self) -> Vec<&'t str> {
        let mut found = Vec::new();
        let is_number = |word: &str| {
            let digits = word.trim_start_matches(['-', '+', '.']);
            digits.starts_with(|c: char| c.is_ascii_digit()) || ["inf", "nan"].contains(&digits)
        };
        while let Some(word) = self.peek().filter(|word| is_number(word)) {
            self.next_word();
            found.push(word);
        }
        found
    }

    /// Returns the following values, at least one.
    ///
    /// # Errors
    /// If there is none.
    pub fn values(&mut self) -> Result<Vec<&'t str>, ScriptError> {
        let values = self.numbers();
        if values.is_empty() {
            self.word("a value")?;
            return Err(self.unexpected("a value"));
        }
        Ok(values)
    }

    /// Returns the lines after this one up to a line that `is_end` accepts or the end, each at its line of the script.
    pub fn block(&mut self, is_end: impl Fn(&str) -> bool) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let first = self.at + rest.find('\n').map_or(rest.len(), |end| end + 1);
        let mut block = "\n".repeat(self.text[..first].matches('\n').count());
        let mut at = first;
        for line in self.text[first..].split_inclusive('\n') {
            if is_end(line.trim_end()) {
                break;
            }
            block += line;
            at += line.len();
        }
        self.at = at;
        block
    }

    /// Returns the error that the last word is not the expected one.
    pub fn unexpected(&self, expected: &'static str) -> ScriptError {
        self.error(ScriptProblem::Unexpected(self.text[self.start..self.at].to_owned(), expected))
    }

    /// Returns an error at the last word.
    pub fn error(&self, problem: ScriptProblem) -> ScriptError {
        let (line, column) = self.place();
        ScriptError { line, column, problem }
    }

    /// Returns line and column of the last word.
    pub fn place(&self) -> (u32, u32) {
        let before = &self.text[..self.start];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
        (line, before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1)
    }
}
