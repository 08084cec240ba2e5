//! Parses one instruction line: its words in any order, then its operands.

use crate::error::KhronosError;
use crate::khronos::NO_VALUE;
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Access, ControlBarrier, InstructionKind, LocationId, MemoryPlace, Operand, Order, Register, RegisterId,
    RegisterInit, RmwOperation, Scope, Semantics, StorageClass, StorageClassSet,
};

use super::{Line, Word, is_name};

/// Keywords of instructions.
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

/// Keywords of scopes.
const SCOPES: [(&str, Scope); 4] = [
    ("scopesg", Scope::Subgroup),
    ("scopewg", Scope::Workgroup),
    ("scopeqf", Scope::QueueFamily),
    ("scopedev", Scope::Device),
];

/// An instruction whose location is not resolved yet.
pub(super) struct Parsed<'a> {
    shape: Shape,
    /// The accessed name and its position.
    pub(super) location: Option<(&'a str, Span)>,
    /// The forced value of a read.
    pub(super) read_value: Option<i64>,
    written: i64,
}

#[derive(Clone)]
enum Shape {
    Load(StorageClass, Access),
    Store(StorageClass, Access),
    Rmw(StorageClass, Scope, Semantics),
    Fence(Scope, Semantics),
    ControlBarrier(ControlBarrier),
    AvailableToDevice,
    VisibleFromDevice,
}

impl Parsed<'_> {
    /// Returns the instruction; a read assigns a fresh register.
    pub(super) fn kind(&self, location: LocationId, registers: &mut Vec<Register>) -> InstructionKind {
        let place = |class| MemoryPlace::of(location, class);
        let mut fresh = || {
            let name = format!("r{}", registers.len());
            registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
            RegisterId(registers.len() as u16 - 1)
        };
        let value = Operand::Constant(self.written);
        match self.shape.clone() {
            Shape::Load(class, access) => InstructionKind::load(fresh(), place(class), access),
            Shape::Store(class, access) => InstructionKind::store(place(class), value, access),
            Shape::Rmw(class, scope, semantics) => {
                let operation = RmwOperation::Exchange(value);
                InstructionKind::rmw(fresh(), place(class), operation, scope, semantics)
            }
            Shape::Fence(scope, semantics) => InstructionKind::Fence { scope, semantics },
            Shape::ControlBarrier(barrier) => InstructionKind::ControlBarrier(barrier),
            Shape::AvailableToDevice => InstructionKind::System(SystemOperation::AvailableToDevice),
            Shape::VisibleFromDevice => InstructionKind::System(SystemOperation::VisibleFromDevice),
        }
    }
}

/// Parses a line.
pub(super) fn parse(line: Line<'_>) -> Result<Parsed<'_>, Vec<KhronosError>> {
    let head = line.text.find(' ').unwrap_or(line.text.len());
    let mut reader = Reader { line, head: line.span(0, head), words: Vec::new(), errors: Vec::new() };
    let mut at = 0;
    for text in line.text.get(..head).unwrap_or("").split('.') {
        let span = line.word_span(Word { text, at });
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
    let shape = reader.shape();
    let operands = line.words(head, &[' ', '=']);
    let parsed = shape.and_then(|shape| reader.operands(shape, &operands));
    match parsed {
        Some(parsed) if reader.errors.is_empty() => Ok(parsed),
        _ => Err(reader.errors),
    }
}

struct Reader<'a> {
    line: Line<'a>,
    head: Span,
    words: Vec<(&'static str, Span)>,
    errors: Vec<KhronosError>,
}

impl<'a> Reader<'a> {
    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|(known, _)| *known == word)
    }

    /// Reports words of `list` that this instruction does not allow.
    fn refuse(&mut self, list: &[&str], problem: &'static str) {
        for (word, span) in &self.words {
            if list.contains(word) {
                self.errors.push(KhronosError::MisplacedWord { word, problem, span: *span });
            }
        }
    }

    fn shape(&mut self) -> Option<Shape> {
        let operations: Vec<&'static str> = ["st", "ld", "rmw", "membar", "cbar", "avdevice", "visdevice"]
            .into_iter()
            .filter(|word| self.has(word))
            .collect();
        let is_access = |word: &&str| matches!(*word, "st" | "ld" | "rmw");
        let accesses = operations.iter().filter(|word| is_access(word)).count();
        let others: Vec<&'static str> = operations.iter().copied().filter(|word| !is_access(word)).collect();
        let span = self.head;
        match (accesses, &others[..]) {
            (0, []) => self.errors.push(KhronosError::MissingOperation { span }),
            (0, ["membar"]) => return self.fence(),
            (0, ["cbar"]) => return self.control_barrier(),
            (0, [device]) => {
                let device = *device;
                let every: Vec<&str> = WORDS.iter().copied().filter(|word| *word != device).collect();
                self.refuse(&every, "beside a device-domain operation");
                return Some(match device {
                    "avdevice" => Shape::AvailableToDevice,
                    _ => Shape::VisibleFromDevice,
                });
            }
            (1.., []) => return self.access(),
            _ => {
                if let [first, second, ..] = operations[..] {
                    self.errors.push(KhronosError::TwoOperations { first, second, span });
                }
            }
        }
        None
    }

    fn scope(&mut self) -> Option<Scope> {
        let mut found = SCOPES.iter().filter(|(word, _)| self.has(word)).map(|(_, scope)| *scope);
        let scope = found.next();
        if found.next().is_some() {
            self.errors.push(KhronosError::TwoScopes { span: self.head });
        }
        scope
    }

    fn needed_scope(&mut self) -> Option<Scope> {
        let scope = self.scope();
        if scope.is_none() {
            self.errors.push(KhronosError::MissingScope { span: self.head });
        }
        scope
    }

    /// Returns the semantics given by the words; `None` without an order.
    fn semantics(&mut self) -> Option<Semantics> {
        let mut classes = StorageClassSet::EMPTY;
        for (word, class) in [("semsc0", StorageClass::Buffer), ("semsc1", StorageClass::Workgroup)] {
            if self.has(word) {
                classes = classes.with(class);
            }
        }
        let (acquires, releases) = (self.has("acq"), self.has("rel"));
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
        let (make_available, make_visible) = (self.has("semav"), self.has("semvis"));
        Some(Semantics { order, classes, make_available, make_visible, ..Semantics::RELAXED })
    }

    fn access(&mut self) -> Option<Shape> {
        let rmw = self.has("rmw") || (self.has("st") && self.has("ld"));
        let (reads, writes) = (rmw || self.has("ld"), rmw || self.has("st"));
        let atomic = self.has("atom") || self.has("rmw");
        if rmw && !atomic {
            self.errors.push(KhronosError::RmwNotAtomic { span: self.head });
            return None;
        }
        if !(reads && atomic) {
            self.refuse(&["acq"], "needs an atomic read or a barrier");
        }
        if !(writes && atomic) {
            self.refuse(&["rel"], "needs an atomic write or a barrier");
        }
        if !writes {
            self.refuse(&["av"], "needs a write");
        }
        if !reads {
            self.refuse(&["vis"], "needs a read");
        }
        let class = match (self.has("sc0"), self.has("sc1")) {
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
        let semantics = self.semantics().unwrap_or(Semantics::RELAXED);
        let access = if atomic {
            Access::Atomic { scope: self.needed_scope()?, semantics }
        } else {
            // A scope without availability or visibility is ignored on a plain access; the default scope is
            // the subgroup.
            let scope = self.scope();
            if self.has("av") || self.has("vis") {
                Access::Coherent { scope: scope.unwrap_or(Scope::Subgroup) }
            } else if self.has("nonpriv") {
                Access::NonPrivate
            } else {
                Access::Private
            }
        };
        Some(match (access, reads, writes) {
            (Access::Atomic { scope, semantics }, true, true) => Shape::Rmw(class?, scope, semantics),
            (_, _, true) => Shape::Store(class?, access),
            _ => Shape::Load(class?, access),
        })
    }

    /// Refuses words that apply to memory accesses only.
    fn refuse_access_words(&mut self) {
        self.refuse(&["atom", "av", "vis", "nonpriv", "sc0", "sc1"], "needs a memory access");
    }

    fn fence(&mut self) -> Option<Shape> {
        self.refuse_access_words();
        let scope = self.needed_scope();
        let semantics = self.semantics();
        if semantics.is_none() {
            self.errors.push(KhronosError::MissingOrder { span: self.head });
        }
        Some(Shape::Fence(scope?, semantics?))
    }

    fn control_barrier(&mut self) -> Option<Shape> {
        self.refuse_access_words();
        let scope = self.needed_scope();
        let semantics = self.semantics();
        Some(Shape::ControlBarrier(ControlBarrier {
            // The format has one scope for both execution and memory.
            execution_scope: scope?,
            memory_scope: scope?,
            semantics,
            id: String::new(),
            resource: None,
            quorum: None,
        }))
    }

    fn operands(&mut self, mut shape: Shape, operands: &[Word<'a>]) -> Option<Parsed<'a>> {
        let (name, numbers) = match &shape {
            Shape::Load(..) | Shape::Store(..) => (true, 1),
            Shape::Rmw(..) => (true, 2),
            Shape::ControlBarrier(_) => (false, 1),
            Shape::Fence(..) | Shape::AvailableToDevice | Shape::VisibleFromDevice => (false, 0),
        };
        let mut rest = operands.iter();
        let location = if name { Some(self.location(rest.next())?) } else { None };
        let mut values = Vec::new();
        for word in rest.by_ref().take(numbers) {
            values.push(self.number(*word, "a number, such as 1")?);
        }
        if let Some(extra) = rest.next() {
            let span = self.line.span(extra.at, self.line.text.len());
            self.errors.push(KhronosError::TrailingText { what: "the instruction", span });
        }
        if let Shape::ControlBarrier(barrier) = &mut shape {
            let Some(instance) = values.first() else {
                let (span, expected) = (self.line.end(), "the number of the barrier's instance");
                self.errors.push(KhronosError::NotANumber { span, expected });
                return None;
            };
            barrier.id = instance.to_string();
        }
        let given = |index: usize| values.get(index).copied().filter(|value| *value != NO_VALUE);
        let (read, written) = match &shape {
            Shape::Load(..) => (given(0), None),
            Shape::Store(..) => (None, given(0)),
            Shape::Rmw(..) => (given(0), given(1)),
            _ => (None, None),
        };
        Some(Parsed { shape, location, read_value: read, written: written.unwrap_or(NO_VALUE) })
    }

    fn location(&mut self, word: Option<&Word<'a>>) -> Option<(&'a str, Span)> {
        let span = word.map_or(self.line.end(), |word| self.line.word_span(*word));
        match word.filter(|word| is_name(word.text)) {
            Some(word) => Some((word.text, span)),
            None => {
                self.errors.push(KhronosError::MissingLocation { span });
                None
            }
        }
    }

    fn number(&mut self, word: Word<'_>, expected: &'static str) -> Option<i64> {
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
