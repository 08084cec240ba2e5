//! Parses one instruction line: its words in any order, then its operands.

use crate::error::KhronosError;
use crate::khronos::NO_VALUE;
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Access, ControlBarrier, InstructionKind, LocationId, MemoryPlace, Operand, Order, Register, RegisterId,
    RegisterInit, RmwOperation, Scope, Semantics, StorageClass, StorageClassSet,
};

use super::{KhronosLine, SourceWord, is_name};

const WORDS: [&str; 23] = [
    "st",
    "ld",
    "rmw",
    "membar",
    "cbar",
    "avdevice",
    "visdevice",
    "atom",
    "acq",
    "rel",
    "av",
    "vis",
    "semav",
    "semvis",
    "nonpriv",
    "sc0",
    "sc1",
    "semsc0",
    "semsc1",
    "scopesg",
    "scopewg",
    "scopeqf",
    "scopedev",
];

const SCOPES: [(&str, Scope); 4] = [
    ("scopesg", Scope::Subgroup),
    ("scopewg", Scope::Workgroup),
    ("scopeqf", Scope::QueueFamily),
    ("scopedev", Scope::Device),
];

/// An instruction whose location is not resolved yet.
pub(super) struct ParsedInstruction<'a> {
    shape: InstructionShape,
    /// The accessed name and its position.
    pub(super) location: Option<(&'a str, Span)>,
    /// The forced value of a read.
    pub(super) read_value: Option<i64>,
    written: i64,
}

#[derive(Clone)]
enum InstructionShape {
    Load(StorageClass, Access),
    Store(StorageClass, Access),
    Rmw(StorageClass, Scope, Semantics),
    Fence(Scope, Semantics),
    ControlBarrier(ControlBarrier),
    AvailableToDevice,
    VisibleFromDevice,
}

impl ParsedInstruction<'_> {
    /// Returns the instruction; a read assigns a fresh register.
    pub(super) fn instruction_kind(
        &self,
        location: LocationId,
        registers: &mut Vec<Register>,
    ) -> InstructionKind {
        let place = |class| MemoryPlace::whole_location(location, class);
        let mut new_register = || {
            let name = format!("r{}", registers.len());
            registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
            RegisterId(registers.len() as u16 - 1)
        };
        let value = Operand::Constant(self.written);
        match self.shape.clone() {
            InstructionShape::Load(class, access) => {
                InstructionKind::load(new_register(), place(class), access)
            }
            InstructionShape::Store(class, access) => InstructionKind::store(place(class), value, access),
            InstructionShape::Rmw(class, scope, semantics) => {
                let operation = RmwOperation::Exchange(value);
                InstructionKind::rmw(new_register(), place(class), operation, scope, semantics)
            }
            InstructionShape::Fence(scope, semantics) => InstructionKind::Fence { scope, semantics },
            InstructionShape::ControlBarrier(barrier) => InstructionKind::ControlBarrier(barrier),
            InstructionShape::AvailableToDevice => {
                InstructionKind::System(SystemOperation::AvailableToDevice)
            }
            InstructionShape::VisibleFromDevice => {
                InstructionKind::System(SystemOperation::VisibleFromDevice)
            }
        }
    }
}

pub(super) fn parse_line(line: KhronosLine<'_>) -> Result<ParsedInstruction<'_>, Vec<KhronosError>> {
    let head = line.text.find(' ').unwrap_or(line.text.len());
    let mut reader =
        InstructionReader { line, head: line.span_between(0, head), words: Vec::new(), errors: Vec::new() };
    let mut at = 0;
    for text in line.text.get(..head).unwrap_or("").split('.') {
        let span = line.word_span(SourceWord { text, at });
        match WORDS.iter().find(|word| **word == text) {
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
    let shape = reader.read_shape();
    let operands = line.split_words(head, &[' ', '=']);
    let parsed = shape.and_then(|shape| reader.read_operands(shape, &operands));
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

    fn read_shape(&mut self) -> Option<InstructionShape> {
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
                let every: Vec<&str> = WORDS.iter().copied().filter(|word| *word != device).collect();
                self.refuse_words(&every, "beside a device-domain operation");
                return Some(match device {
                    "avdevice" => InstructionShape::AvailableToDevice,
                    _ => InstructionShape::VisibleFromDevice,
                });
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
        for (word, class) in [("semsc0", StorageClass::Buffer), ("semsc1", StorageClass::Workgroup)] {
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

    fn read_access(&mut self) -> Option<InstructionShape> {
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
        Some(match (access, reads, writes) {
            (Access::Atomic { scope, semantics }, true, true) => {
                InstructionShape::Rmw(class?, scope, semantics)
            }
            (_, _, true) => InstructionShape::Store(class?, access),
            _ => InstructionShape::Load(class?, access),
        })
    }

    /// Refuses words that apply to memory accesses only.
    fn refuse_access_words(&mut self) {
        self.refuse_words(&["atom", "av", "vis", "nonpriv", "sc0", "sc1"], "needs a memory access");
    }

    fn read_fence(&mut self) -> Option<InstructionShape> {
        self.refuse_access_words();
        let scope = self.require_scope();
        let semantics = self.read_semantics();
        if semantics.is_none() {
            self.errors.push(KhronosError::MissingOrder { span: self.head });
        }
        Some(InstructionShape::Fence(scope?, semantics?))
    }

    fn read_control_barrier(&mut self) -> Option<InstructionShape> {
        self.refuse_access_words();
        let scope = self.require_scope();
        let semantics = self.read_semantics();
        Some(InstructionShape::ControlBarrier(ControlBarrier {
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
        mut shape: InstructionShape,
        operands: &[SourceWord<'a>],
    ) -> Option<ParsedInstruction<'a>> {
        let (name, numbers) = match &shape {
            InstructionShape::Load(..) | InstructionShape::Store(..) => (true, 1),
            InstructionShape::Rmw(..) => (true, 2),
            InstructionShape::ControlBarrier(_) => (false, 1),
            InstructionShape::Fence(..)
            | InstructionShape::AvailableToDevice
            | InstructionShape::VisibleFromDevice => (false, 0),
        };
        let mut rest = operands.iter();
        let location = if name { Some(self.read_location(rest.next())?) } else { None };
        let mut values = Vec::new();
        for word in rest.by_ref().take(numbers) {
            values.push(self.read_number(*word, "a number, such as 1")?);
        }
        if let Some(extra) = rest.next() {
            let span = self.line.span_between(extra.at, self.line.text.len());
            self.errors.push(KhronosError::TrailingText { what: "the instruction", span });
        }
        if let InstructionShape::ControlBarrier(barrier) = &mut shape {
            let Some(instance) = values.first() else {
                let (span, expected) = (self.line.end_span(), "the number of the barrier's instance");
                self.errors.push(KhronosError::NotANumber { span, expected });
                return None;
            };
            barrier.id = instance.to_string();
        }
        let given = |index: usize| values.get(index).copied().filter(|value| *value != NO_VALUE);
        let (read, written) = match &shape {
            InstructionShape::Load(..) => (given(0), None),
            InstructionShape::Store(..) => (None, given(0)),
            InstructionShape::Rmw(..) => (given(0), given(1)),
            _ => (None, None),
        };
        Some(ParsedInstruction { shape, location, read_value: read, written: written.unwrap_or(NO_VALUE) })
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
