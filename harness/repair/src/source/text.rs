//! A shader source as functions and statements, for GLSL, HLSL, Slang and WGSL.
//!
//! The parser recognizes blocks, `if`, loops and simple statements; all else is plain text. It does not
//! expand macros, and reads all branches of `#if`. A fix that is based on a misparsed structure does not
//! compile or does not remove the finding, so callers compile and walk every changed text.

use std::ops::Range;

use spirv_reader::ShaderLanguage;

/// A statement.
#[derive(Clone, Debug)]
pub(super) struct ShaderStatement {
    /// The bytes, including the final semicolon or brace.
    pub range: Range<usize>,
    pub kind: StatementKind,
}

/// The form of a statement.
#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// An expression, a declaration or a jump.
    Simple,
    Block(Vec<ShaderStatement>),
    If {
        condition: Range<usize>,
        then: Box<ShaderStatement>,
        otherwise: Option<Box<ShaderStatement>>,
    },
    /// A loop; the header is the text between its parentheses, or empty.
    Loop {
        header: Range<usize>,
        body: Box<ShaderStatement>,
    },
    /// A `switch`.
    Other,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub(super) struct ShaderFunction {
    pub name: String,
    /// The bytes between the parentheses.
    pub parameters: Range<usize>,
    /// The bytes between the braces.
    pub body: Range<usize>,
    pub statements: Vec<ShaderStatement>,
}

/// A parsed source.
#[derive(Clone, Debug)]
pub(super) struct ShaderText {
    pub text: String,
    /// The text with comments, strings, directives and non-ASCII characters replaced by blanks. Offsets are
    /// equal.
    pub plain: String,
    pub language: ShaderLanguage,
    pub functions: Vec<ShaderFunction>,
}

/// Upper bound on the nesting of statements.
const MAX_NESTING: usize = 60;

impl ShaderText {
    pub fn parse(language: ShaderLanguage, text: &str) -> ShaderText {
        let plain = blank_all_but_code(text);
        let functions = parse_functions(&plain, language);
        ShaderText { text: text.to_owned(), plain, language, functions }
    }

    /// Returns the line of an offset, from 1.
    pub fn line_of(&self, at: usize) -> u32 {
        self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() as u32 + 1
    }

    /// Returns the blanks at the start of the line of an offset.
    pub fn indentation(&self, at: usize) -> &str {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[start..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// Returns one level of indentation.
    pub fn indentation_unit(&self) -> &'static str {
        if self.text.contains("\n\t") { "\t" } else { "    " }
    }

    /// Returns the code of a range, without comments.
    pub fn code(&self, range: &Range<usize>) -> &str {
        self.plain.get(range.clone()).unwrap_or_default().trim()
    }

    /// Returns true if a range contains a preprocessor directive.
    pub fn has_directive(&self, range: &Range<usize>) -> bool {
        self.text
            .get(range.clone())
            .is_some_and(|text| text.lines().skip(1).any(|line| line.trim_start().starts_with('#')))
    }

    /// Returns the function around an offset.
    pub fn function_at(&self, at: usize) -> Option<&ShaderFunction> {
        self.functions.iter().find(|function| function.body.contains(&at))
    }

    /// Returns the statements around an offset, the outermost first.
    pub fn path_to(&self, at: usize) -> Vec<&ShaderStatement> {
        let mut path = Vec::new();
        let mut level: Vec<&ShaderStatement> =
            self.function_at(at).map(|function| function.statements.iter().collect()).unwrap_or_default();
        while let Some(next) = level.iter().copied().find(|one| one.range.contains(&at)) {
            path.push(next);
            level = next.children();
        }
        path
    }

    /// Returns all statements in preorder.
    pub fn statements(&self) -> Vec<&ShaderStatement> {
        self.functions.iter().flat_map(|function| all_statements(&function.statements)).collect()
    }

    /// Returns the statements that start on a line, the outermost first.
    pub fn statements_starting_on(&self, line: u32) -> Vec<&ShaderStatement> {
        self.statements().into_iter().filter(|one| self.line_of(one.range.start) == line).collect()
    }

    /// Returns the simple statements that overlap a line.
    pub fn simple_statements_on(&self, line: u32) -> Vec<&ShaderStatement> {
        let is_here = |statement: &&ShaderStatement| {
            let last = statement.range.end.saturating_sub(1).max(statement.range.start);
            matches!(statement.kind, StatementKind::Simple)
                && (self.line_of(statement.range.start)..=self.line_of(last)).contains(&line)
        };
        self.statements().into_iter().filter(is_here).collect()
    }

    /// Returns the parent of a statement.
    pub fn parent(&self, of: &Range<usize>) -> Option<&ShaderStatement> {
        self.statements().into_iter().find(|one| one.children().iter().any(|child| child.range == *of))
    }

    /// Returns true if a statement is the body of an `if` or loop, without braces.
    pub fn is_unbraced(&self, of: &Range<usize>) -> bool {
        let is_list = |statement: &ShaderStatement| matches!(statement.kind, StatementKind::Block(_));
        self.parent(of).is_some_and(|parent| !is_list(parent))
    }
}

impl ShaderStatement {
    /// Returns the parts of a statement.
    pub fn children(&self) -> Vec<&ShaderStatement> {
        match &self.kind {
            StatementKind::Simple | StatementKind::Other => Vec::new(),
            StatementKind::Block(parts) => parts.iter().collect(),
            StatementKind::If { then, otherwise, .. } => {
                std::iter::once(&**then).chain(otherwise.as_deref()).collect()
            }
            StatementKind::Loop { body, .. } => vec![body],
        }
    }

    /// Returns the condition of an `if`, or the header of a loop.
    pub fn head(&self) -> Option<&Range<usize>> {
        match &self.kind {
            StatementKind::If { condition: head, .. } | StatementKind::Loop { header: head, .. } => {
                Some(head)
            }
            StatementKind::Simple | StatementKind::Block(_) | StatementKind::Other => None,
        }
    }

    /// Returns the statements of a block, or the statement itself.
    pub fn block_statements(&self) -> Vec<&ShaderStatement> {
        match &self.kind {
            StatementKind::Block(parts) => parts.iter().collect(),
            _ => vec![self],
        }
    }
}

/// Returns the identifiers of a text: words that do not start with a digit.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    shader_source::scan::words(text).filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns all statements in preorder.
fn all_statements(of: &[ShaderStatement]) -> Vec<&ShaderStatement> {
    let mut found = Vec::new();
    let mut stack: Vec<&ShaderStatement> = of.iter().rev().collect();
    while let Some(statement) = stack.pop() {
        found.push(statement);
        stack.extend(statement.children().into_iter().rev());
    }
    found
}

/// Replaces comments, strings, directives and non-ASCII characters by blanks.
fn blank_all_but_code(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in shader_source::scan::blank_comments(text).split_inclusive('\n') {
        let is_directive = line.trim_start().starts_with('#');
        let mut is_string = false;
        for byte in line.bytes() {
            let is_code = byte.is_ascii() && byte != b'"' && !is_directive && !is_string;
            is_string ^= byte == b'"';
            plain.push(if is_code || byte == b'\n' { char::from(byte) } else { ' ' });
        }
    }
    plain
}

/// Returns the offset after the bracket that matches the one at `open`.
pub(super) fn closing_bracket_end(plain: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in plain.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the functions with a body.
fn parse_functions(plain: &str, language: ShaderLanguage) -> Vec<ShaderFunction> {
    let mut functions = Vec::new();
    let (mut at, mut head) = (0, 0);
    while let Some(byte) = plain.as_bytes().get(at) {
        match byte {
            b';' => head = at + 1,
            b'{' => {
                let Some(end) = closing_bracket_end(plain, at) else { break };
                if let Some((name, parameters)) = parse_function_head(plain, head..at) {
                    let body = at + 1..end - 1;
                    let mut parser = StatementParser { plain, language, depth: 0 };
                    let statements = parser.parse_statements(body.clone());
                    functions.push(ShaderFunction { name, parameters, body, statements });
                }
                at = end;
                head = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    functions
}

/// Returns the name and the parameters of a function, if the text before a brace is a function header.
fn parse_function_head(plain: &str, head: Range<usize>) -> Option<(String, Range<usize>)> {
    let text = plain.get(head.clone())?;
    // Attributes may have parentheses, too. The parameters are the last group, unless the result is
    // annotated.
    let mut groups = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('(') {
        let end = closing_bracket_end(text, at + open)?;
        groups.push(at + open..end);
        at = end;
    }
    let function_name = |group: &Range<usize>| {
        let before = text[..group.start].trim_end();
        let start =
            before.rfind(|c: char| !shader_source::scan::is_identifier_character(c)).map_or(0, |end| end + 1);
        let is_attribute = before[..start].ends_with('@');
        let name = &before[start..];
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_keyword = ["layout", "register", "packoffset", "location", "builtin"].contains(&name);
        // A return type precedes the name of a function, or `fn`.
        let is_typed = !before[..start].trim().is_empty();
        (is_name && !is_keyword && !is_attribute && is_typed).then(|| name.to_owned())
    };
    let (group, name) = groups.iter().rev().find_map(|group| Some((group, function_name(group)?)))?;
    let rest = text[group.end..].trim();
    let is_function = rest.is_empty() || rest.starts_with(':') || rest.starts_with("->");
    is_function.then(|| (name, head.start + group.start + 1..head.start + group.end - 1))
}

struct StatementParser<'a> {
    plain: &'a str,
    language: ShaderLanguage,
    depth: usize,
}

impl StatementParser<'_> {
    /// Parses the statements of a range.
    fn parse_statements(&mut self, range: Range<usize>) -> Vec<ShaderStatement> {
        let mut found = Vec::new();
        let mut at = range.start;
        while let Some(statement) = self.parse_statement(at, range.end) {
            at = statement.range.end;
            found.push(statement);
        }
        found
    }

    fn skip_blanks(&self, at: usize, end: usize) -> usize {
        let text = self.plain.get(at..end).unwrap_or_default();
        at + text.len() - text.trim_start().len()
    }

    /// Parses the statement at an offset; `None` at the end.
    fn parse_statement(&mut self, at: usize, end: usize) -> Option<ShaderStatement> {
        let start = self.skip_blanks(at, end);
        if start >= end || self.depth > MAX_NESTING {
            return None;
        }
        self.depth += 1;
        let found = self.parse_statement_at(start, end);
        self.depth -= 1;
        found
    }

    fn parse_statement_at(&mut self, start: usize, end: usize) -> Option<ShaderStatement> {
        let mut at = start;
        // `[unroll]` and `@diagnostic(…)` before a keyword.
        while self.plain[at..end].starts_with('[') {
            at = self.skip_blanks(closing_bracket_end(self.plain, at)?, end);
        }
        let rest = &self.plain[at..end];
        if rest.starts_with('{') {
            let close = closing_bracket_end(self.plain, at)?;
            let parts = self.parse_statements(at + 1..close - 1);
            return Some(ShaderStatement { range: start..close, kind: StatementKind::Block(parts) });
        }
        let word: String =
            rest.chars().take_while(|c| shader_source::scan::is_identifier_character(*c)).collect();
        match word.as_str() {
            "if" => self.parse_if(start, at + 2, end),
            "for" | "while" => self.parse_loop(start, at + word.len(), end),
            "loop" => {
                let body = Box::new(self.parse_statement(at + word.len(), end)?);
                let range = start..body.range.end;
                Some(ShaderStatement { range, kind: StatementKind::Loop { header: at..at, body } })
            }
            "do" => {
                let body = Box::new(self.parse_statement(at + 2, end)?);
                let close = self.statement_end(body.range.end, end);
                let kind = StatementKind::Loop { header: at..at, body };
                Some(ShaderStatement { range: start..close, kind })
            }
            "switch" => {
                let open = at + self.plain[at..end].find('{')?;
                let close = closing_bracket_end(self.plain, open)?;
                Some(ShaderStatement { range: start..close, kind: StatementKind::Other })
            }
            _ => {
                let close = self.statement_end(at, end);
                Some(ShaderStatement { range: start..close, kind: StatementKind::Simple })
            }
        }
    }

    /// Returns the condition or header at an offset without its parentheses, and the offset after it.
    fn parse_head(&self, at: usize, end: usize) -> Option<(Range<usize>, usize)> {
        let open = self.skip_blanks(at, end);
        if self.language == ShaderLanguage::Wgsl {
            let brace = open + self.plain[open..end].find('{')?;
            let text = self.plain[open..brace].trim_end();
            let full_range = open..open + text.len();
            // Parentheses around the whole text are removed.
            let inner = match text.starts_with('(')
                && closing_bracket_end(self.plain, open) == Some(full_range.end)
            {
                true => full_range.start + 1..full_range.end - 1,
                false => full_range,
            };
            return Some((inner, brace));
        }
        let close = closing_bracket_end(self.plain, open).filter(|_| self.plain[open..].starts_with('('))?;
        Some((open + 1..close - 1, close))
    }

    fn parse_if(&mut self, start: usize, at: usize, end: usize) -> Option<ShaderStatement> {
        let (condition, rest) = self.parse_head(at, end)?;
        let then = Box::new(self.parse_statement(rest, end)?);
        let mut if_end = then.range.end;
        let next = self.skip_blanks(if_end, end);
        let is_else = self.plain[next..end].strip_prefix("else");
        let otherwise =
            match is_else.filter(|rest| !rest.starts_with(shader_source::scan::is_identifier_character)) {
                Some(_) => {
                    let other = self.parse_statement(next + "else".len(), end)?;
                    if_end = other.range.end;
                    Some(Box::new(other))
                }
                None => None,
            };
        Some(ShaderStatement { range: start..if_end, kind: StatementKind::If { condition, then, otherwise } })
    }

    fn parse_loop(&mut self, start: usize, at: usize, end: usize) -> Option<ShaderStatement> {
        let (header, rest) = self.parse_head(at, end)?;
        let body = Box::new(self.parse_statement(rest, end)?);
        let range = start..body.range.end;
        Some(ShaderStatement { range, kind: StatementKind::Loop { header, body } })
    }

    /// Returns the offset after the semicolon that ends a simple statement.
    fn statement_end(&self, at: usize, end: usize) -> usize {
        let mut depth = 0_usize;
        for (index, byte) in self.plain.bytes().enumerate().take(end).skip(at) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b';' if depth == 0 => return index + 1,
                _ => {}
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_three_languages() {
        let cases = [
            (
                "a.comp",
                "layout(local_size_x = 8) in;\nshared uint s[2]; // {\nvoid main() {\n  if (a) return;\n  else { b(); }\n  for (int i = 0; i < 3; ++i)\n    s[i] = 0;\n}\n",
            ),
            (
                "a.hlsl",
                "cbuffer C : register(b0) { uint n; };\n[numthreads(8, 1, 1)]\nvoid main(uint i : SV_GroupIndex)\n{\n  if (a) { return; } else b();\n  [unroll] for (int i = 0; i < 3; ++i) s[i] = 0;\n}\n",
            ),
            (
                "a.wgsl",
                "struct S { a: u32 }\n@compute @workgroup_size(8)\nfn main(@builtin(local_invocation_index) i: u32) {\n  if (a) { return; } else { b(); }\n  for (var i = 0; i < 3; i++) { s[i] = 0; }\n}\n",
            ),
        ];
        for (file, text) in cases {
            let parsed = ShaderText::parse(ShaderLanguage::from_extension(&file[2..]).unwrap(), text);
            assert_eq!(parsed.functions.len(), 1, "{file}: {:?}", parsed.functions);
            let function = &parsed.functions[0];
            assert_eq!(function.name, "main");
            let [first, second] = &function.statements[..] else {
                panic!("{file}: {:?}", function.statements)
            };
            let StatementKind::If { condition, otherwise: Some(other), .. } = &first.kind else {
                panic!("{file}: {first:?}")
            };
            assert_eq!(parsed.code(condition), "a");
            assert!(parsed.code(&other.range).contains("b();"));
            let StatementKind::Loop { header, body } = &second.kind else { panic!("{file}: {second:?}") };
            assert!(parsed.code(header).contains("i < 3"));
            assert!(parsed.code(&body.range).contains("s[i] = 0;"));
            let store = text.find("s[i] = 0").unwrap();
            let line = parsed.line_of(store);
            assert_eq!(parsed.simple_statements_on(line).len(), 1);
            assert_eq!(parsed.is_unbraced(&parsed.simple_statements_on(line)[0].range), file != "a.wgsl");
        }
    }
}
