//! Parses one instruction line: its words in any order, then its operands.

use crate::error::KhronosError;
use crate::khronos::NO_VALUE;
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Access, AccessKind, Components, ControlBarrier, InstructionKind, LocationId, MemoryPlace, Operand, Order,
    Register, RegisterId, RegisterInit, RmwOperation, Scope, Semantics, StorageClass, StorageClassSet,
};

use super::{KhronosLine, SourceWord, is_name};

/// The words of instructions, one a line.
const WORDS: &str = include_str!("words.txt");

pub(super) const SCOPES: [(&str, Scope); 4] = [
    ("scopesg", Scope::Subgroup),
    ("scopewg", Scope::Workgroup),
    ("scopeqf", Scope::QueueFamily),
    ("scopedev", Scope::Device),
];

/// The storage classes: their words for accesses and for semantics.
pub(super) const CLASSES: [(&str, &str, StorageClass); 2] =
    [("sc0", "semsc0", StorageClass::Buffer), ("sc1", "semsc1", StorageClass::Workgroup)];

/// An instruction whose location and register are not resolved yet.
pub(super) struct ParsedInstruction<'a> {
    kind: InstructionKind,
    /// The accessed name and its position.
    pub(super) location: Option<(&'a str, Span)>,
    /// The forced value of a read.
    pub(super) read_value: Option<i64>,
}

impl ParsedInstruction<'_> {
    /// Returns the instruction; a read assigns a fresh register.
    pub(super) fn instruction_kind(
        mut self,
        location: LocationId,
        registers: &mut Vec<Register>,
    ) -> InstructionKind {
        let Some(access) = self.kind.access_mut() else { return self.kind };
        access.place.location = location;
        if access.is_read() {
            let name = format!("r{}", registers.len());
            registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
        }
        let register = RegisterId(registers.len().saturating_sub(1) as u16);
        match &mut access.kind {
            AccessKind::Load(destinations) => *destinations = Components::scalar(register),
            AccessKind::Rmw { destination, .. } => *destination = Some(register),
            AccessKind::Store(_) | AccessKind::Await { .. } => {}
        }
        self.kind
    }
}

pub(super) fn parse_line(line: KhronosLine<'_>) -> Result<ParsedInstruction<'_>, Vec<KhronosError>> {
    let head = line.text.find(' ').unwrap_or(line.text.len());
    let mut reader =
        InstructionReader { line, head: line.span_between(0, head), words: Vec::new(), errors: Vec::new() };
    let mut at = 0;
    for text in line.text.get(..head).unwrap_or("").split('.') {
        let span = line.word_span(SourceWord { text, at });
        match WORDS.lines().find(|word| *word == text) {
            Some(word) => reader.words.push((word, span)),
            None => {
                let word = text.chars().take(40).collect();
                reader.errors.push(KhronosError::UnknownWord { word, span });
            }
        }
        at += text.len() + 1;
    }
    if !reader.errors.is_empty() {
        return Err(reader.errors);
    }
    let kind = reader.read_kind();
    let operands = line.split_words(head, &[' ', '=']);
    let parsed = kind.and_then(|kind| reader.read_operands(kind, &operands));
    match parsed {
        Some(parsed) if reader.errors.is_empty() => Ok(parsed),
        _ => Err(reader.errors),
    }
}

struct InstructionReader<'a> {
    line: KhronosLine<'a>,
    head: Span,
    words: Vec<(&'static str, Span)>,
    errors: Vec<KhronosError>,
}

impl<'a> InstructionReader<'a> {
    fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|(known, _)| *known == word)
    }

    /// Reports words of `list` that this instruction does not allow.
    fn refuse_words(&mut self, list: &[&str], problem: &'static str) {
        for (word, span) in &self.words {
            if list.contains(word) {
                self.errors.push(KhronosError::MisplacedWord { word, problem, span: *span });
            }
        }
    }

    fn read_kind(&mut self) -> Option<InstructionKind> {
        let operations: Vec<&'static str> = ["st", "ld", "rmw", "membar", "cbar", "avdevice", "visdevice"]
            .into_iter()
            .filter(|word| self.has_word(word))
            .collect();
        let is_access = |word: &&str| matches!(*word, "st" | "ld" | "rmw");
        let accesses = operations.iter().filter(|word| is_access(word)).count();
        let others: Vec<&'static str> = operations.iter().copied().filter(|word| !is_access(word)).collect();
        let span = self.head;
        match (accesses, &others[..]) {
            (0, []) => self.errors.push(KhronosError::MissingOperation { span }),
            (0, ["membar"]) => return self.read_fence(),
            (0, ["cbar"]) => return self.read_control_barrier(),
            (0, [device]) => {
                let device = *device;
                let every: Vec<&str> = WORDS.lines().filter(|word| *word != device).collect();
                self.refuse_words(&every, "beside a device-domain operation");
                return Some(InstructionKind::System(match device {
                    "avdevice" => SystemOperation::AvailableToDevice,
                    _ => SystemOperation::VisibleFromDevice,
                }));
            }
            (1.., []) => return self.read_access(),
            _ => {
                if let [first, second, ..] = operations[..] {
                    self.errors.push(KhronosError::TwoOperations { first, second, span });
                }
            }
        }
        None
    }

    fn read_scope(&mut self) -> Option<Scope> {
        let mut found = SCOPES.iter().filter(|(word, _)| self.has_word(word)).map(|(_, scope)| *scope);
        let scope = found.next();
        if found.next().is_some() {
            self.errors.push(KhronosError::TwoScopes { span: self.head });
        }
        scope
    }

    fn require_scope(&mut self) -> Option<Scope> {
        let scope = self.read_scope();
        if scope.is_none() {
            self.errors.push(KhronosError::MissingScope { span: self.head });
        }
        scope
    }

    /// Returns the semantics given by the words; `None` without an order.
    fn read_semantics(&mut self) -> Option<Semantics> {
        let mut classes = StorageClassSet::EMPTY;
        for (_, word, class) in CLASSES {
            if self.has_word(word) {
                classes = classes.with(class);
            }
        }
        let (acquires, releases) = (self.has_word("acq"), self.has_word("rel"));
        for (words, order, present) in [
            (&["semsc0", "semsc1"][..], "acq` or `.rel", acquires || releases),
            (&["semav"][..], "rel", releases),
            (&["semvis"][..], "acq", acquires),
        ] {
            for (word, span) in self.words.iter().filter(|(word, _)| !present && words.contains(word)) {
                self.errors.push(KhronosError::SemanticsWithoutOrder { word, order, span: *span });
            }
        }
        if (acquires || releases) && classes == StorageClassSet::EMPTY {
            self.errors.push(KhronosError::MissingSemantics { span: self.head });
        }
        let order = match (acquires, releases) {
            (false, false) => return None,
            (true, false) => Order::Acquire,
            (false, true) => Order::Release,
            (true, true) => Order::AcquireRelease,
        };
        let (make_available, make_visible) = (self.has_word("semav"), self.has_word("semvis"));
        Some(Semantics { order, classes, make_available, make_visible, ..Semantics::RELAXED })
    }

    fn read_access(&mut self) -> Option<InstructionKind> {
        let rmw = self.has_word("rmw") || (self.has_word("st") && self.has_word("ld"));
        let (reads, writes) = (rmw || self.has_word("ld"), rmw || self.has_word("st"));
        let atomic = self.has_word("atom") || self.has_word("rmw");
        if rmw && !atomic {
            self.errors.push(KhronosError::RmwNotAtomic { span: self.head });
            return None;
        }
        if !(reads && atomic) {
            self.refuse_words(&["acq"], "needs an atomic read or a barrier");
        }
        if !(writes && atomic) {
            self.refuse_words(&["rel"], "needs an atomic write or a barrier");
        }
        if !writes {
            self.refuse_words(&["av"], "needs a write");
        }
        if !reads {
            self.refuse_words(&["vis"], "needs a read");
        }
        let class = match (self.has_word("sc0"), self.has_word("sc1")) {
            (true, false) => Some(StorageClass::Buffer),
            (false, true) => Some(StorageClass::Workgroup),
            (false, false) => {
                self.errors.push(KhronosError::MissingClass { span: self.head });
                None
            }
            (true, true) => {
                self.errors.push(KhronosError::TwoClasses { span: self.head });
                None
            }
        };
        let semantics = self.read_semantics().unwrap_or(Semantics::RELAXED);
        let access = if atomic {
            Access::Atomic { scope: self.require_scope()?, semantics }
        } else {
            // A scope without availability or visibility is ignored on a plain access; the default scope is
            // the subgroup.
            let scope = self.read_scope();
            if self.has_word("av") || self.has_word("vis") {
                Access::Coherent { scope: scope.unwrap_or(Scope::Subgroup) }
            } else if self.has_word("nonpriv") {
                Access::NonPrivate
            } else {
                Access::Private
            }
        };
        let place = MemoryPlace::whole_location(LocationId(0), class?);
        let (register, value) = (RegisterId(0), Operand::Constant(NO_VALUE));
        Some(match (access, reads, writes) {
            (Access::Atomic { scope, semantics }, true, true) => {
                InstructionKind::rmw(register, place, RmwOperation::Exchange(value), scope, semantics)
            }
            (_, _, true) => InstructionKind::store(place, value, access),
            _ => InstructionKind::load(register, place, access),
        })
    }

    /// Refuses words that apply to memory accesses only.
    fn refuse_access_words(&mut self) {
        self.refuse_words(&["atom", "av", "vis", "nonpriv", "sc0", "sc1"], "needs a memory access");
    }

    fn read_fence(&mut self) -> Option<InstructionKind> {
        self.refuse_access_words();
        let scope = self.require_scope();
        let semantics = self.read_semantics();
        if semantics.is_none() {
            self.errors.push(KhronosError::MissingOrder { span: self.head });
        }
        Some(InstructionKind::Fence { scope: scope?, semantics: semantics? })
    }

    fn read_control_barrier(&mut self) -> Option<InstructionKind> {
        self.refuse_access_words();
        let scope = self.require_scope();
        let semantics = self.read_semantics();
        Some(InstructionKind::ControlBarrier(ControlBarrier {
            // The format has one scope for both execution and memory.
            execution_scope: scope?,
            memory_scope: scope?,
            semantics,
            id: String::new(),
            resource: None,
            quorum: None,
        }))
    }

    fn read_operands(
        &mut self,
        mut kind: InstructionKind,
        operands: &[SourceWord<'a>],
    ) -> Option<ParsedInstruction<'a>> {
        let access = kind.access().map(|access| (access.is_read(), access.is_write()));
        let (reads, writes) = access.unwrap_or_default();
        let is_barrier = matches!(kind, InstructionKind::ControlBarrier(_));
        let mut rest = operands.iter();
        let location = if access.is_some() { Some(self.read_location(rest.next())?) } else { None };
        let mut values = Vec::new();
        let numbers = [reads, writes, is_barrier].map(usize::from).into_iter().sum();
        for word in rest.by_ref().take(numbers) {
            values.push(self.read_number(*word, "a number, such as 1")?);
        }
        if let Some(extra) = rest.next() {
            let span = self.line.span_between(extra.at, self.line.text.len());
            self.errors.push(KhronosError::TrailingText { what: "the instruction", span });
        }
        if let InstructionKind::ControlBarrier(barrier) = &mut kind {
            let Some(instance) = values.first() else {
                let (span, expected) = (self.line.end_span(), "the number of the barrier's instance");
                self.errors.push(KhronosError::NotANumber { span, expected });
                return None;
            };
            barrier.id = instance.to_string();
        }
        let read_value = values.first().copied().filter(|value| reads && *value != NO_VALUE);
        let written = Operand::Constant(values.get(usize::from(reads)).copied().unwrap_or(NO_VALUE));
        match kind.access_mut().map(|access| &mut access.kind) {
            Some(AccessKind::Store(values)) => *values = Components::scalar(written),
            Some(AccessKind::Rmw { operation, .. }) => *operation = RmwOperation::Exchange(written),
            Some(AccessKind::Load(_) | AccessKind::Await { .. }) | None => {}
        }
        Some(ParsedInstruction { kind, location, read_value })
    }

    fn read_location(&mut self, word: Option<&SourceWord<'a>>) -> Option<(&'a str, Span)> {
        let span = word.map_or(self.line.end_span(), |word| self.line.word_span(*word));
        match word.filter(|word| is_name(word.text)) {
            Some(word) => Some((word.text, span)),
            None => {
                self.errors.push(KhronosError::MissingLocation { span });
                None
            }
        }
    }

    fn read_number(&mut self, word: SourceWord<'_>, expected: &'static str) -> Option<i64> {
        // The reference reader stores values in 32 bits.
        match word.text.parse::<i32>() {
            Ok(number) if !word.text.starts_with('+') => Some(i64::from(number)),
            _ => {
                let span = self.line.word_span(word);
                self.errors.push(KhronosError::NotANumber { span, expected });
                None
            }
        }
    }
}
