//! Swaps of two threads together with locations and numbers that tell them apart.
//!
//! In a queue lock, each thread stores its own number, compares what it reads with the numbers of the others, and waits at
//! their flags. A permutation of the threads then maps executions to executions if it permutes numbers and flags too.
//!
//! The instructions of the two threads, one by one, determine the permutation. It is used if it maps the code of each thread to
//! that of its image. Tests of one register for equality may come in another order. Numbers may change only in values
//! that are copied, stored and compared for equality (`ValueClasses`), and where no memory starts with them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use litmus::{
    AccessKind, Comparison, Compute, Condition, Flow, Instruction, InstructionKind, LabelId, Location,
    LocationId, LocationInit, Operand, RegisterId, RegisterInit, RmwOperation, Span, Term, Test, Thread,
};

/// Numbers that may change: each is representable in every type, and no two are equal in one.
const REPLACEABLE: RangeInclusive<i64> = 0..=127;

/// A permutation of the locations and numbers of a test that belongs to a swap of two threads.
pub(super) struct Renaming {
    /// The image of each location.
    locations: Vec<LocationId>,
    /// The image of each number of a class of values; others are their own.
    numbers: BTreeMap<(usize, i64), i64>,
    classes: ValueClasses,
}

impl Renaming {
    /// Finds the permutation that swaps two threads and leaves each other thread as it is.
    pub(super) fn new(test: &Test, threads: [usize; 2]) -> Option<Renaming> {
        let [one, other] = threads.map(|thread| &test.threads[thread]);
        let declarations = |thread: &Thread| -> Vec<_> {
            thread.registers.iter().map(|register| (register.init, register.declared)).collect()
        };
        let is_plain = |init: &LocationInit| matches!(init, LocationInit::Constant(_));
        if one.instructions.len() != other.instructions.len()
            || declarations(one) != declarations(other)
            || !test.locations.iter().all(|location| is_plain(&location.init))
        {
            return None;
        }
        let pairs = || one.instructions.iter().zip(&other.instructions).map(|(a, b)| (&a.kind, &b.kind));
        let mut images: BTreeMap<LocationId, LocationId> = BTreeMap::new();
        for (a, b) in pairs() {
            if let (Some(a), Some(b)) = (a.access(), b.access()) {
                insert_pair(&mut images, a.place.location, b.place.location)?;
            }
        }
        let image = |id| images.get(&id).copied().unwrap_or(id);
        let locations: Vec<LocationId> =
            (0..test.locations.len()).map(|index| image(LocationId(index as u16))).collect();
        let classes = ValueClasses::new(test, threads, &locations);
        let mut numbers = BTreeMap::new();
        for (a, b) in pairs() {
            let Some(class) = classes.of_numbers(threads[0], a) else { continue };
            for operands in a.operands().into_iter().zip(b.operands()) {
                if let (Operand::Constant(a), Operand::Constant(b)) = operands {
                    insert_pair(&mut numbers, (class, a), (class, b))?;
                }
            }
        }
        let numbers: BTreeMap<_, _> = numbers
            .into_iter()
            .filter(|(number, image)| number != image)
            .map(|(number, (_, image))| (number, image))
            .collect();
        let renaming = Renaming { locations, numbers, classes };
        renaming.is_automorphism(test, threads).then_some(renaming)
    }

    /// Returns true if a condition means the same after the permutation, apart from the swap of the threads.
    pub(super) fn preserves(&self, condition: Option<&Condition>) -> bool {
        let mut preserves = true;
        if let Some(condition) = condition {
            condition.for_each_term(&mut |term| {
                preserves &= match term {
                    Term::Register(thread, register) => {
                        !self.has_moved_numbers(self.classes.of_register(usize::from(thread.0), *register))
                    }
                    Term::Location(location, _) => {
                        self.is_fixed(*location)
                            && !self.has_moved_numbers(self.classes.of_location(*location))
                    }
                    Term::Address(location) => self.is_fixed(*location),
                    Term::Constant(_) => true,
                };
            });
        }
        preserves
    }

    fn is_fixed(&self, location: LocationId) -> bool {
        self.locations[usize::from(location.0)] == location
    }

    fn has_moved_numbers(&self, class: usize) -> bool {
        self.numbers.range((class, i64::MIN)..=(class, i64::MAX)).next().is_some()
    }

    /// Returns true if it maps the test to itself.
    fn is_automorphism(&self, test: &Test, [one, other]: [usize; 2]) -> bool {
        let keeps_start = |class: usize, start: i64| {
            !self.has_moved_numbers(class)
                || REPLACEABLE.contains(&start) && !self.numbers.contains_key(&(class, start))
        };
        let declaration =
            |location: &Location| Location { name: String::new(), span: Span::default(), ..location.clone() };
        let starts_alike = |(index, own): (usize, &Location)| {
            let image = &test.locations[usize::from(self.locations[index].0)];
            let LocationInit::Constant(start) = own.init else { return false };
            keeps_start(self.classes.classes[index], start) && declaration(own) == declaration(image)
        };
        let registers = test.threads.iter().zip(&self.classes.first_register).flat_map(|(thread, first)| {
            thread.registers.iter().enumerate().map(move |(index, register)| (first + index, register.init))
        });
        let keeps_register = |(index, init): (usize, RegisterInit)| matches!(init, RegisterInit::Constant(start) if keeps_start(self.classes.classes[index], start));
        self.numbers.keys().all(|(class, _)| !self.classes.is_fixed[*class])
            && test.locations.iter().enumerate().all(starts_alike)
            && { registers }.all(keeps_register)
            && (0..test.threads.len()).all(|thread| {
                let image = match thread {
                    _ if thread == one => other,
                    _ if thread == other => one,
                    _ => thread,
                };
                CodeComparison {
                    renaming: self,
                    thread,
                    code: code_of(test, thread),
                    image: code_of(test, image),
                }
                .is_equal()
            })
    }

    /// Returns an instruction of a thread with its locations and numbers replaced.
    fn rename(&self, thread: usize, kind: &InstructionKind) -> InstructionKind {
        let class = self.classes.of_numbers(thread, kind);
        let rename = |operand: Operand| match (operand, class) {
            (Operand::Constant(number), Some(class)) => {
                Operand::Constant(self.numbers.get(&(class, number)).copied().unwrap_or(number))
            }
            _ => operand,
        };
        let mut renamed = kind.clone();
        match &mut renamed {
            InstructionKind::Access(access) => {
                access.place.location = self.locations[usize::from(access.place.location.0)];
                match &mut access.kind {
                    AccessKind::Load(_) => {}
                    AccessKind::Store(values) => *values = values.map(rename),
                    AccessKind::Await { value, .. } => *value = rename(*value),
                    AccessKind::Rmw { operation, .. } => match operation {
                        RmwOperation::Exchange(value) | RmwOperation::Fetch(_, value) => {
                            *value = rename(*value)
                        }
                        RmwOperation::CompareExchange { compare, value, .. } => {
                            (*compare, *value) = (rename(*compare), rename(*value));
                        }
                    },
                }
            }
            InstructionKind::Compute(Compute::Move { value, .. }) => *value = rename(*value),
            InstructionKind::Flow(Flow::Branch { left, right, .. }) => {
                (*left, *right) = (rename(*left), rename(*right));
            }
            _ => {}
        }
        renamed
    }
}

/// Adds a pair to an involution; `None` if one of them has another image.
fn insert_pair<T: Ord + Copy>(images: &mut BTreeMap<T, T>, a: T, b: T) -> Option<()> {
    let is_new = |known: &BTreeMap<T, T>, from, to| known.get(&from).is_none_or(|image| *image == to);
    (is_new(images, a, b) && is_new(images, b, a)).then(|| {
        images.insert(a, b);
        images.insert(b, a);
    })
}

fn code_of(test: &Test, thread: usize) -> &[Instruction] {
    &test.threads[thread].instructions
}

/// The registers and locations of a test by the values that they exchange.
///
/// One class has all that are connected by copies and by comparisons for equality.
struct ValueClasses {
    /// The class of each location, and then of each register of each thread.
    classes: Vec<usize>,
    /// For each class, true if values are computed from it or compared by size, or if parts of it are accessed.
    is_fixed: Vec<bool>,
    /// The index of the first register of each thread.
    first_register: Vec<usize>,
}

impl ValueClasses {
    /// Classifies the values of a test; a location and its image, and the registers of the two threads, share a class.
    fn new(test: &Test, [one, other]: [usize; 2], images: &[LocationId]) -> ValueClasses {
        let mut first_register = Vec::new();
        let mut count = test.locations.len();
        for thread in &test.threads {
            first_register.push(count);
            count += thread.registers.len();
        }
        let mut all =
            ValueClasses { classes: (0..count).collect(), is_fixed: vec![false; count], first_register };
        for (index, image) in images.iter().enumerate() {
            all.join(&[index, usize::from(image.0)], false);
        }
        for register in 0..test.threads[one].registers.len() {
            all.join(&[one, other].map(|thread| all.first_register[thread] + register), false);
        }
        for (thread, data) in test.threads.iter().enumerate() {
            for Instruction { kind, .. } in &data.instructions {
                let register = |id: RegisterId| all.first_register[thread] + usize::from(id.0);
                let place = kind.access().map(|access| usize::from(access.place.location.0));
                let registers = kind.registers_read().chain(kind.destinations()).map(register);
                let members: Vec<usize> = place.into_iter().chain(registers).collect();
                let mut numbers = kind.operands().into_iter().filter_map(|operand| match operand {
                    Operand::Constant(number) => Some(number),
                    Operand::Register(_) => None,
                });
                let is_large = numbers.any(|number| !REPLACEABLE.contains(&number));
                all.join(&members, is_large || !is_copy(kind));
            }
        }
        all
    }

    /// Joins the classes of these members; `fixes`: their numbers must not change.
    fn join(&mut self, members: &[usize], fixes: bool) {
        let Some(first) = members.first().map(|member| self.classes[*member]) else { return };
        for member in members {
            let joined = self.classes[*member];
            self.is_fixed[first] |= self.is_fixed[joined] || fixes;
            self.classes.iter_mut().filter(|class| **class == joined).for_each(|class| *class = first);
        }
    }

    fn of_location(&self, location: LocationId) -> usize {
        self.classes[usize::from(location.0)]
    }

    fn of_register(&self, thread: usize, register: RegisterId) -> usize {
        self.classes[self.first_register[thread] + usize::from(register.0)]
    }

    /// Returns the class of the numbers among an instruction's operands.
    fn of_numbers(&self, thread: usize, kind: &InstructionKind) -> Option<usize> {
        let register = kind.registers_read().chain(kind.destinations()).next();
        match kind.access() {
            Some(access) => Some(self.of_location(access.place.location)),
            None => register.map(|register| self.of_register(thread, register)),
        }
    }
}

/// Returns true if an instruction only copies whole values or compares them for equality.
fn is_copy(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Access(access) => {
            let place = access.place;
            let is_scalar = match access.kind {
                AccessKind::Load(registers) => registers.count() == 1,
                AccessKind::Store(values) => values.count() == 1,
                AccessKind::Rmw { operation, .. } => !matches!(operation, RmwOperation::Fetch(..)),
                AccessKind::Await { .. } => true,
            };
            is_scalar && place.offset == 0 && place.scalar.is_none() && place.address.is_none()
        }
        InstructionKind::Compute(Compute::Move { .. }) => true,
        InstructionKind::Flow(Flow::Branch { relation, .. }) => {
            matches!(relation, Comparison::Equal | Comparison::NotEqual)
        }
        InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_))
        | InstructionKind::Fence { .. }
        | InstructionKind::ControlBarrier(_)
        | InstructionKind::SplitBarrier(_) => true,
        _ => false,
    }
}

/// Compares the renamed code of a thread with the code of its image.
struct CodeComparison<'a> {
    renaming: &'a Renaming,
    thread: usize,
    code: &'a [Instruction],
    image: &'a [Instruction],
}

/// A register that is compared with one number after another.
struct Selection {
    register: RegisterId,
    /// Where the code goes on for each number.
    cases: BTreeMap<i64, usize>,
    otherwise: usize,
}

impl CodeComparison<'_> {
    /// Returns true if both execute the same instructions in the same cases: a bisimulation.
    fn is_equal(&self) -> bool {
        let mut compared = BTreeSet::new();
        let mut open = vec![(0, 0)];
        while let Some((at, image_at)) = open.pop() {
            let (Some(at), Some(image_at)) = (skip_jumps(self.code, at), skip_jumps(self.image, image_at))
            else {
                return false;
            };
            if !compared.insert((at, image_at)) {
                continue;
            }
            match self.compare(at, image_at) {
                Some(successors) => open.extend(successors),
                None => return false,
            }
        }
        true
    }

    /// Compares two instructions; returns the pairs that follow them if they are equal.
    fn compare(&self, at: usize, image_at: usize) -> Option<Vec<(usize, usize)>> {
        let (Some(own), Some(other)) = (self.code.get(at), self.image.get(image_at)) else {
            return (at >= self.code.len() && image_at >= self.image.len()).then(Vec::new);
        };
        if let (Some(own), Some(other)) = (selection(self.code, at), selection(self.image, image_at)) {
            let class = self.renaming.classes.of_register(self.thread, own.register);
            let rename = |number: i64| self.renaming.numbers.get(&(class, number)).copied().unwrap_or(number);
            if own.register != other.register || own.cases.len() != other.cases.len() {
                return None;
            }
            let cases = own.cases.iter().map(|(number, to)| Some((*to, *other.cases.get(&rename(*number))?)));
            return cases.chain([Some((own.otherwise, other.otherwise))]).collect();
        }
        let renamed = self.renaming.rename(self.thread, &own.kind);
        let next = (at + 1, image_at + 1);
        let (InstructionKind::Flow(own), InstructionKind::Flow(other)) = (&renamed, &other.kind) else {
            return (renamed == other.kind).then(|| vec![next]);
        };
        let is_same = match (own, other) {
            (
                Flow::Branch { relation, left, right, .. },
                Flow::Branch { relation: other, left: other_left, right: other_right, .. },
            ) => (relation, left, right) == (other, other_left, other_right),
            (Flow::BranchIf { condition, .. }, Flow::BranchIf { condition: other, .. }) => condition == other,
            _ => false,
        };
        let targets =
            (label_place(self.code, flow_target(own)?)?, label_place(self.image, flow_target(other)?)?);
        is_same.then(|| vec![targets, next])
    }
}

/// Returns the label that a branch leads to.
fn flow_target(flow: &Flow) -> Option<LabelId> {
    match flow {
        Flow::Branch { target, .. } | Flow::BranchIf { target, .. } => Some(*target),
        Flow::Label(_) | Flow::Goto(_) => None,
    }
}

fn label_place(code: &[Instruction], label: LabelId) -> Option<usize> {
    code.iter().position(|instruction| instruction.kind == InstructionKind::Flow(Flow::Label(label)))
}

/// Returns the next place that is neither a label nor an unconditional jump; `None` if these never end.
fn skip_jumps(code: &[Instruction], mut at: usize) -> Option<usize> {
    for _ in 0..=code.len() {
        match code.get(at).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Flow(Flow::Label(_))) => at += 1,
            Some(InstructionKind::Flow(Flow::Goto(target))) => at = label_place(code, *target)?,
            _ => return Some(at),
        }
    }
    None
}

/// Reads a chain of tests of one register for equality with numbers.
fn selection(code: &[Instruction], start: usize) -> Option<Selection> {
    let mut found: Option<Selection> = None;
    let mut at = start;
    loop {
        let kind = code.get(at).map(|instruction| &instruction.kind);
        let Some(InstructionKind::Flow(Flow::Branch { relation, left, right, target })) = kind else { break };
        let ((Operand::Register(register), Operand::Constant(number))
        | (Operand::Constant(number), Operand::Register(register))) = (*left, *right)
        else {
            break;
        };
        let target = label_place(code, *target)?;
        let (equal, unequal) = match relation {
            Comparison::Equal => (target, at + 1),
            Comparison::NotEqual => (at + 1, target),
            _ => break,
        };
        let chain =
            found.get_or_insert_with(|| Selection { register, cases: BTreeMap::new(), otherwise: at });
        // A number that is tested twice ends the chain, as a loop of tests does.
        if chain.register != register || chain.cases.contains_key(&number) {
            break;
        }
        chain.cases.insert(number, equal);
        at = skip_jumps(code, unequal)?;
        chain.otherwise = at;
    }
    found
}
