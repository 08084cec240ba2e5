//! Parses Khronos' `.test` format strictly: words that the reference reader ignores, and forms that its model
//! cannot represent, are mistakes.

mod barrier;
mod instruction;
mod print;
mod query;

pub(crate) use print::instruction_line as instruction_text;
pub(super) use print::print_test;

use crate::error::{ErrorList, KhronosError, ParseError};
use crate::khronos::Khronos;
use crate::span::Span;
use crate::test::{
    Dialect, Instruction, Location, LocationId, LocationInit, Placement, SyncPoint, SystemSync, Test, Thread,
    ThreadId, ThreadPlace,
};

use super::{MAX_LOCATIONS, MAX_SYSTEM_SYNC, MAX_THREADS};

/// The maximum number of instructions in the reference reader.
const MAX_INSTRUCTIONS: usize = 100;

/// Returns true if a text is in this format, by the extension of its file, or by its first word without one.
pub(super) fn is_khronos(text: &str, source_name: &str) -> bool {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    if let Some((_, extension)) = file.rsplit_once('.') {
        return extension == "test";
    }
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("//"));
    first.and_then(|line| line.split_whitespace().next()).is_some_and(|word| {
        matches!(
            word,
            "NEWQF" | "NEWWG" | "NEWSG" | "NEWTHREAD" | "SSW" | "SLOC" | "SATISFIABLE" | "NOSOLUTION"
        )
    })
}

/// Parses a text; the result is valid only if nothing was added to `errors`.
pub(super) fn parse(text: &str, name: String, errors: &mut ErrorList) -> Test {
    let mut reader = KhronosReader {
        errors,
        test: Test::new(name, Dialect::Khronos),
        khronos: Khronos::default(),
        pending: PendingGroups::default(),
        number: 0,
        syncs: Vec::new(),
        instructions: 0,
    };
    reader.read_text(text);
    reader.test.khronos = Some(reader.khronos);
    reader.test
}

/// A line without its terminator and trailing blanks.
#[derive(Clone, Copy)]
struct KhronosLine<'a> {
    text: &'a str,
    offset: usize,
    number: u32,
}

/// A word of a line with its byte offset.
#[derive(Clone, Copy)]
struct SourceWord<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> KhronosLine<'a> {
    fn span_between(&self, from: usize, to: usize) -> Span {
        let before = self.text.get(..from).unwrap_or(self.text);
        Span {
            offset: (self.offset + from) as u32,
            length: (to - from) as u32,
            line: self.number,
            column: 1 + before.chars().count() as u32,
        }
    }

    fn word_span(&self, word: SourceWord<'_>) -> Span {
        self.span_between(word.at, word.at + word.text.len())
    }

    fn end_span(&self) -> Span {
        self.span_between(self.text.len(), self.text.len())
    }

    /// Returns the words between any of `separators`, from byte `from` on.
    fn split_words(&self, from: usize, separators: &[char]) -> Vec<SourceWord<'a>> {
        let mut words = Vec::new();
        let mut start = None;
        for (index, character) in self.text.char_indices().skip_while(|(index, _)| *index < from) {
            match (separators.contains(&character), start) {
                (true, Some(at)) => {
                    words.push(SourceWord { text: &self.text[at..index], at });
                    start = None;
                }
                (false, None) => start = Some(index),
                _ => {}
            }
        }
        if let Some(at) = start {
            words.push(SourceWord { text: &self.text[at..], at });
        }
        words
    }
}

/// The groups that begin at the next instruction.
#[derive(Default)]
struct PendingGroups {
    queue_family: Option<Span>,
    workgroup: Option<Span>,
    subgroup: Option<Span>,
    thread: Option<Span>,
}

struct KhronosReader<'e> {
    errors: &'e mut ErrorList,
    test: Test,
    khronos: Khronos,
    pending: PendingGroups,
    /// The number of the current thread.
    number: u32,
    /// `SSW` lines: each side's thread number and position, and the position of the line.
    syncs: Vec<([(u32, Span); 2], Span)>,
    instructions: usize,
}

impl KhronosReader<'_> {
    fn push_error(&mut self, error: KhronosError) {
        self.errors.push(error.into());
    }

    fn read_text(&mut self, text: &str) {
        let mut lines = Vec::new();
        let mut offset = 0;
        for (index, raw) in text.split('\n').enumerate() {
            lines.push(KhronosLine { text: raw.trim_end(), offset, number: index as u32 + 1 });
            offset += raw.len() + 1;
        }
        let heading = lines.iter().take_while(|line| line.text.is_empty() || line.text.starts_with("//"));
        self.test.metadata.comments =
            heading.filter_map(|line| line.text.strip_prefix("//")).map(str::to_owned).collect();
        lines.retain(|line| !line.text.is_empty() && !line.text.starts_with("//"));
        // SLOC lines apply to names in all lines, so they are read first.
        for line in &lines {
            if let Some(keyword) = line.split_words(0, &[' ']).first().filter(|word| word.text == "SLOC") {
                self.read_same_location(*line, *keyword);
            }
        }
        // Each alias refers directly to the first name of its location, independent of the order of the lines.
        for index in 0..self.test.locations.len() {
            let storage = self.test.storage_of(LocationId(index as u16));
            if usize::from(storage.0) != index {
                self.test.locations[index].init = LocationInit::AliasOf(storage);
            }
        }
        for line in &lines {
            self.read_line(*line);
        }
        self.check_end(
            lines.last().map_or(Span { line: 1, column: 1, ..Span::default() }, KhronosLine::end_span),
        );
    }

    fn read_line(&mut self, line: KhronosLine<'_>) {
        if line.text.starts_with(char::is_whitespace) {
            let indent = line.text.len() - line.text.trim_start().len();
            self.push_error(KhronosError::Indented { span: line.span_between(0, indent) });
            // It may have been the instruction that the previous directives apply to.
            self.pending = PendingGroups::default();
            return;
        }
        let words = line.split_words(0, &[' ']);
        let Some(keyword) = words.first() else { return };
        match keyword.text {
            "SLOC" => {}
            "SSW" => self.read_system_sync(line, &words),
            "SATISFIABLE" | "NOSOLUTION" => match query::parse_query(line, *keyword) {
                Ok(query) => self.khronos.queries.push(query),
                Err(error) => self.push_error(error),
            },
            "NEWQF" | "NEWWG" | "NEWSG" | "NEWTHREAD" => self.read_directive(line, &words),
            _ => self.read_instruction(line),
        }
    }

    fn read_directive(&mut self, line: KhronosLine<'_>, words: &[SourceWord<'_>]) {
        let Some(keyword) = words.first() else { return };
        let span = line.word_span(*keyword);
        let (slot, most) = match keyword.text {
            "NEWQF" => (&mut self.pending.queue_family, 1),
            "NEWWG" => (&mut self.pending.workgroup, 1),
            "NEWSG" => (&mut self.pending.subgroup, 1),
            _ => (&mut self.pending.thread, 2),
        };
        slot.get_or_insert(span);
        if let Some(extra) = words.get(most) {
            let what = "the directive";
            self.push_error(KhronosError::TrailingText {
                what,
                span: line.span_between(extra.at, line.text.len()),
            });
        }
        if most == 2 {
            match words.get(1).map(|word| (word.text.parse::<u32>(), line.word_span(*word))) {
                None => self.number = self.number.saturating_add(1),
                Some((Ok(number), _)) => self.number = number,
                Some((Err(_), span)) => {
                    self.push_error(KhronosError::NotANumber { span, expected: "the number of a thread" });
                }
            }
        }
    }

    /// Applies the directives before an instruction; returns true if a thread exists for it.
    fn begin_groups(&mut self, span: Span) -> bool {
        let pending = std::mem::take(&mut self.pending);
        let mut nests = true;
        let placement = match self.test.threads.last().map(|thread| thread.place) {
            Some(ThreadPlace::Device(current)) => {
                let nested = [
                    ("NEWQF", pending.queue_family, "NEWWG", pending.workgroup),
                    ("NEWWG", pending.workgroup, "NEWSG", pending.subgroup),
                    ("NEWSG", pending.subgroup, "NEWTHREAD", pending.thread),
                ];
                for (outer, at, inner, inside) in nested {
                    if let (Some(span), None) = (at, inside) {
                        self.push_error(KhronosError::GroupNotClosed { outer, inner, span });
                        nests = false;
                    }
                }
                let Placement { queue_family, workgroup, subgroup, .. } = current;
                if pending.queue_family.is_some() {
                    Placement { queue_family: queue_family + 1, queue: 0, workgroup: 0, subgroup: 0 }
                } else if pending.workgroup.is_some() {
                    Placement { queue_family, queue: 0, workgroup: workgroup + 1, subgroup: 0 }
                } else if pending.subgroup.is_some() {
                    Placement { queue_family, queue: 0, workgroup, subgroup: subgroup + 1 }
                } else if pending.thread.is_some() {
                    current
                } else {
                    return true;
                }
            }
            _ => Placement { queue_family: 0, queue: 0, workgroup: 0, subgroup: 0 },
        };
        let span = pending.thread.unwrap_or(span);
        if nests && self.test.threads.iter().any(|thread| thread.number == self.number) {
            self.push_error(KhronosError::DuplicateThread { number: self.number, span });
        }
        if self.test.threads.len() == MAX_THREADS {
            self.errors.push(ParseError::TooMany { what: "threads", limit: MAX_THREADS, span });
            return false;
        }
        self.test.threads.push(Thread {
            number: self.number,
            place: ThreadPlace::Device(placement),
            registers: Vec::new(),
            labels: Vec::new(),
            instructions: Vec::new(),
            span,
        });
        self.khronos.read_values.push(Vec::new());
        true
    }

    fn read_instruction(&mut self, line: KhronosLine<'_>) {
        let span = line.span_between(0, line.text.len());
        let placed = self.begin_groups(span);
        let parsed = match instruction::parse_line(line) {
            Ok(parsed) => parsed,
            Err(errors) => {
                errors.into_iter().for_each(|error| self.push_error(error));
                return;
            }
        };
        self.instructions += 1;
        if self.instructions > MAX_INSTRUCTIONS {
            let (what, limit) = ("instructions", MAX_INSTRUCTIONS);
            self.errors.push(ParseError::TooMany { what, limit, span });
            return;
        }
        let location = parsed.location.map(|(name, at)| self.intern_location(name, at, false));
        if let Some(thread) = self.test.threads.last_mut().filter(|_| placed) {
            if let Some(values) = self.khronos.read_values.last_mut() {
                values.push(parsed.read_value);
            }
            let kind = parsed.instruction_kind(location.unwrap_or(LocationId(0)), &mut thread.registers);
            thread.instructions.push(Instruction { kind, span });
        }
    }

    /// Returns the location of a name; a new one if it is unknown.
    fn intern_location(&mut self, name: &str, span: Span, declared: bool) -> LocationId {
        if let Some(index) = self.test.locations.iter().position(|location| location.name == name) {
            return LocationId(index as u16);
        }
        if self.test.locations.len() == MAX_LOCATIONS {
            self.errors.push(ParseError::TooMany { what: "locations", limit: MAX_LOCATIONS, span });
            return LocationId(0);
        }
        self.test.locations.push(Location { declared, span, ..Location::new(name) });
        LocationId(self.test.locations.len() as u16 - 1)
    }

    /// Parses `SLOC a b`: two names of one location.
    fn read_same_location(&mut self, line: KhronosLine<'_>, keyword: SourceWord<'_>) {
        let names = line.split_words(keyword.at + keyword.text.len(), &[' ']);
        let mut found = Vec::new();
        for index in 0..2 {
            match names.get(index) {
                Some(name) if is_name(name.text) => found.push((name.text, line.word_span(*name))),
                other => {
                    let span = other.map_or(line.end_span(), |word| line.word_span(*word));
                    self.push_error(KhronosError::MissingLocation { span });
                    return;
                }
            }
        }
        if let Some(extra) = names.get(2) {
            let span = line.span_between(extra.at, line.text.len());
            self.push_error(KhronosError::TrailingText { what: "`SLOC`", span });
        }
        let [first, second] = found[..] else { return };
        if first.0 == second.0 {
            let (keyword, what) = ("SLOC", "location");
            self.push_error(KhronosError::PairWithItself { keyword, what, span: second.1 });
            return;
        }
        let first = self.intern_location(first.0, first.1, true);
        let second = self.intern_location(second.0, second.1, true);
        let (first, second) = (self.test.storage_of(first), self.test.storage_of(second));
        if first != second
            && let Some(later) = self.test.locations.get_mut(usize::from(first.max(second).0))
        {
            later.init = LocationInit::AliasOf(first.min(second));
        }
    }

    fn read_system_sync(&mut self, line: KhronosLine<'_>, words: &[SourceWord<'_>]) {
        let mut sides = Vec::new();
        for index in 1..3 {
            let span = words.get(index).map_or(line.end_span(), |word| line.word_span(*word));
            match words.get(index).and_then(|word| word.text.parse::<u32>().ok()) {
                Some(number) => sides.push((number, span)),
                None => {
                    self.push_error(KhronosError::NotANumber { span, expected: "the number of a thread" });
                    return;
                }
            }
        }
        if let Some(extra) = words.get(3) {
            let span = line.span_between(extra.at, line.text.len());
            self.push_error(KhronosError::TrailingText { what: "`SSW`", span });
        }
        let [from, to] = sides[..] else { return };
        let span = line.span_between(0, line.text.len());
        if from.0 == to.0 {
            self.push_error(KhronosError::PairWithItself { keyword: "SSW", what: "thread", span: to.1 });
        } else if self.syncs.len() == MAX_SYSTEM_SYNC {
            self.errors.push(ParseError::TooMany { what: "`SSW` pairs", limit: MAX_SYSTEM_SYNC, span });
        } else {
            self.syncs.push(([from, to], span));
        }
    }

    /// Checks that need all lines.
    fn check_end(&mut self, end: Span) {
        let pending = std::mem::take(&mut self.pending);
        let first = [
            ("NEWQF", pending.queue_family),
            ("NEWWG", pending.workgroup),
            ("NEWSG", pending.subgroup),
            ("NEWTHREAD", pending.thread),
        ];
        let (instructions, threads) = (self.instructions, &self.test.threads);
        let mut errors = Vec::new();
        match first.into_iter().find_map(|(directive, span)| span.map(|span| (directive, span))) {
            Some((directive, span)) => errors.push(KhronosError::EmptyGroup { directive, span }),
            None if instructions == 0 && threads.is_empty() => {
                errors.push(KhronosError::NoInstruction { span: end });
            }
            None => {}
        }
        for (sides, span) in std::mem::take(&mut self.syncs) {
            let mut points = Vec::new();
            for (number, span) in sides {
                match threads.iter().position(|thread| thread.number == number) {
                    Some(index) => {
                        points.push(SyncPoint { thread: ThreadId(index as u16), instruction: None });
                    }
                    None => errors.push(KhronosError::UnknownThread { number, span }),
                }
            }
            if let [from, to] = points[..] {
                self.test.system_sync.push(SystemSync { from, to, span });
            }
        }
        errors.extend(barrier::check_barriers(&self.test));
        errors.into_iter().for_each(|error| self.push_error(error));
    }
}

/// Returns true if a word is a valid location name.
pub(crate) fn is_name(word: &str) -> bool {
    !word.starts_with(|c: char| c.is_ascii_digit())
        && !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
