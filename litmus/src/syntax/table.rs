//! Parses the thread headers and splits the table into cells.

use super::MAX_THREADS;
use super::header::ForeignSyntax;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use crate::error::ParseError;
use crate::span::Span;
use crate::test::{LabelId, Placement, Scope, Thread, ThreadId, ThreadPlace};

/// Words that end the table.
const AFTER_TABLE: [&str; 6] = ["locations", "filter", "exists", "forall", "final", "not"];

impl Parser<'_> {
    /// Parses the header row. Returns false if nothing after it can be parsed.
    pub(super) fn parse_header_row(&mut self) -> bool {
        loop {
            let column = self.test.threads.len();
            let start = self.peek().span;
            if column >= MAX_THREADS {
                self.errors.push(ParseError::TooMany { what: "threads", limit: MAX_THREADS, span: start });
                return false;
            }
            let header = self.parse_thread_header();
            if header.is_err() {
                self.skip_to(&[TokenKind::Bar, TokenKind::Semicolon]);
            }
            let ends_early = header.is_err() && self.peek().kind == TokenKind::End;
            let (number, place) = header.unwrap_or_else(|error| {
                self.errors.push(error);
                // A placeholder keeps the columns aligned, so that the cells can still be checked.
                (
                    column as u32,
                    ThreadPlace::Device(Placement { queue_family: 0, queue: 0, workgroup: 0, subgroup: 0 }),
                )
            });
            if ends_early {
                return false;
            }
            if self.find_thread(number).is_some() {
                self.errors.push(ParseError::DuplicateThread { number, span: start });
            } else if number as usize != column {
                self.errors.push(ParseError::ThreadOrder { found: number, column, span: start });
            } else if self.test.threads.iter().any(|other| {
                let (ThreadPlace::Device(own), ThreadPlace::Device(other)) = (place, other.place) else {
                    return false;
                };
                own.shares_scope(other, Scope::Workgroup) && own.queue != other.queue
            }) {
                self.errors.push(ParseError::WorkgroupOnTwoQueues { number, span: start });
            }
            self.test.threads.push(Thread {
                number,
                place,
                registers: Vec::new(),
                labels: Vec::new(),
                instructions: Vec::new(),
                span: start,
            });
            self.placed_labels.push(Vec::new());
            self.label_mentions.push(Vec::new());
            match self.peek().kind {
                TokenKind::Bar => {
                    self.next();
                }
                TokenKind::Semicolon => {
                    self.next();
                    return true;
                }
                TokenKind::End => {
                    let error = self.unexpected_token("`;` after the threads");
                    self.errors.push(error);
                    return false;
                }
                _ => {
                    let error = self.unexpected_token("`|` or `;`");
                    self.errors.push(error);
                    self.skip_to(&[TokenKind::Bar, TokenKind::Semicolon]);
                    if !self.accept(TokenKind::Bar) {
                        return self.accept(TokenKind::Semicolon);
                    }
                }
            }
        }
    }

    /// Parses `P0@sg 0, wg 0, qf 0` or `P0@host`.
    pub(super) fn parse_thread_header(&mut self) -> Parsed<(u32, ThreadPlace)> {
        if self.is_hsa() {
            return self.parse_hsa_thread_header();
        }
        if self.foreign == Some(ForeignSyntax::Ptx) {
            return self.parse_ptx_thread_header();
        }
        let (number, _) = self.parse_thread_number()?;
        self.expect(TokenKind::At, "`@` and where the thread runs")?;
        if self.at_word("host") {
            self.next();
            return Ok((number, ThreadPlace::Host));
        }
        let subgroup = self.parse_coordinate("sg", "`sg` and a number, or `host`")?;
        self.expect(TokenKind::Comma, "`,` and `wg`")?;
        let workgroup = self.parse_coordinate("wg", "`wg` and a number")?;
        self.expect(TokenKind::Comma, "`,` and `qf`")?;
        let queue_family = self.parse_coordinate("qf", "`qf` and a number")?;
        let queue =
            if self.accept(TokenKind::Comma) { self.parse_coordinate("q", "`q` and a number")? } else { 0 };
        Ok((number, ThreadPlace::Device(Placement { queue_family, queue, workgroup, subgroup })))
    }

    pub(super) fn parse_coordinate(&mut self, word: &str, expected: &'static str) -> Parsed<u32> {
        if !self.at_word(word) {
            return Err(self.unexpected_token(expected));
        }
        self.next();
        self.parse_small_number("a number")
    }

    // The table.

    /// Splits the table into cells: token ranges by thread, without empty ones.
    pub(super) fn split_table(&mut self) -> Vec<Vec<(usize, usize)>> {
        let threads = self.test.threads.len();
        let mut columns = vec![Vec::new(); threads];
        if self.is_after_table() {
            let error = self.unexpected_token("a row of instructions");
            self.errors.push(error);
        }
        while !self.is_after_table() {
            let row_start = self.position;
            let cells = self.split_row();
            let too_many = cells.len() > threads && cells[threads..].iter().any(|(start, end)| start < end);
            let cells = if too_many { self.truncate_row(row_start, cells) } else { cells };
            for (column, (start, end)) in columns.iter_mut().zip(cells) {
                if start < end {
                    column.push((start, end));
                }
            }
        }
        columns
    }

    /// Returns true if the table has ended.
    pub(super) fn is_after_table(&self) -> bool {
        let token = self.peek();
        match token.kind {
            TokenKind::End | TokenKind::Tilde => true,
            TokenKind::Word if self.is_hsa() => super::hsa::AFTER_TABLE.contains(&self.token_text(token)),
            TokenKind::Word => AFTER_TABLE.contains(&self.token_text(token)),
            _ => false,
        }
    }

    /// Splits one row, up to and including its `;`.
    pub(super) fn split_row(&mut self) -> Vec<(usize, usize)> {
        let mut cells = Vec::new();
        let mut start = self.position;
        loop {
            if self.is_after_table() {
                self.errors.push(ParseError::MissingSemicolon { span: self.span_after_previous() });
                cells.push((start, self.position));
                return cells;
            }
            let token = self.next();
            match token.kind {
                TokenKind::Bar => {
                    cells.push((start, self.position - 1));
                    start = self.position;
                }
                TokenKind::Semicolon => {
                    cells.push((start, self.position - 1));
                    return cells;
                }
                _ => {}
            }
        }
    }

    /// Reports a row with too many cells, and truncates it to those that belong to it.
    ///
    /// If a line ends inside one of them, its `;` is missing, and parsing continues after that line.
    pub(super) fn truncate_row(
        &mut self,
        row_start: usize,
        mut cells: Vec<(usize, usize)>,
    ) -> Vec<(usize, usize)> {
        let threads = self.test.threads.len();
        let broken = cells.iter().take(threads).enumerate().find_map(|(index, (start, end))| {
            (start + 1..*end)
                .find(|at| self.tokens[*at].span.line > self.tokens[at - 1].span.line)
                .map(|at| (index, at))
        });
        match broken {
            Some((index, at)) => {
                self.errors.push(ParseError::MissingSemicolon { span: self.tokens[at - 1].span });
                self.position = at;
                cells.truncate(index + 1);
                cells[index].1 = at;
            }
            None => {
                let span = cells
                    .get(threads)
                    .and_then(|(start, _)| self.tokens.get(start.saturating_sub(1)))
                    .or(self.tokens.get(row_start))
                    .map_or(Span::default(), |token| token.span);
                self.errors.push(ParseError::TooManyCells { found: cells.len(), threads, span });
                cells.truncate(threads);
            }
        }
        cells
    }

    pub(super) fn parse_thread_cells(&mut self, thread: ThreadId, cells: &[(usize, usize)]) {
        let after = self.position;
        for (start, end) in cells {
            (self.position, self.limit) = (*start, *end);
            // A cell with several lines lacks the `;` of their rows.
            loop {
                let result = self.parse_instruction(thread).and_then(|()| {
                    let next = self.peek();
                    if next.kind == TokenKind::End {
                        return Ok(false);
                    }
                    if next.span.line > self.previous_token().span.line {
                        self.errors.push(ParseError::MissingSemicolon { span: self.span_after_previous() });
                        return Ok(true);
                    }
                    Err(self.unexpected_token("`|` or `;`"))
                });
                match result {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        self.errors.push(error);
                        self.recover_names(thread, *start, *end);
                        break;
                    }
                }
            }
        }
        self.position = after;
        self.limit = self.tokens.len();
        let index = usize::from(thread.0);
        let number = self.test.threads[index].number;
        for (label, first_use) in
            self.test.threads[index].labels.iter().enumerate().zip(&self.label_mentions[index])
        {
            let id = LabelId(label.0 as u16);
            if !self.placed_labels[index].contains(&id) && !self.recovered_labels.contains(&(thread, id)) {
                let name = label.1.name.clone();
                self.errors.push(ParseError::UndeclaredLabel { thread: number, name, span: *first_use });
            }
        }
    }
}
