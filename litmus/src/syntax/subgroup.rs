//! Subgroup operations: how they are read and printed, and which of them make sense.

use super::instruction::Modifiers;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::words::{self, Words};
use crate::error::SubgroupError;
use crate::span::Span;
use crate::subgroup::{QuadDirection, SUBGROUP_ARITHMETIC, SubgroupKind, SubgroupOperation, SubgroupSpan};
use crate::tangle::{BlockPart, GuardedBlock, TangledLane};
use crate::test::{ArithmeticOperation, Flow, InstructionKind, Operand, Scope, Test, Thread, ThreadId};

/// The word for a register that a lane does not look at.
pub(super) const UNUSED: &str = "unused";

/// The words after `sg.`, with their operations; numbers and what is computed are read behind them.
pub(super) const SUBGROUP_OPERATIONS: Words<SubgroupKind> = &[
    ("elect", SubgroupKind::Elect),
    ("all", SubgroupKind::All),
    ("any", SubgroupKind::Any),
    ("all_equal", SubgroupKind::AllEqual),
    ("ballot", SubgroupKind::Ballot),
    ("broadcast", SubgroupKind::Broadcast(0)),
    ("broadcast_first", SubgroupKind::BroadcastFirst),
    ("shuffle", SubgroupKind::Shuffle(0)),
    ("shuffle_xor", SubgroupKind::ShuffleXor(0)),
    ("shuffle_up", SubgroupKind::ShuffleUp(0)),
    ("shuffle_down", SubgroupKind::ShuffleDown(0)),
    ("rotate", SubgroupKind::Rotate { delta: 0, cluster: 1 }),
    ("quad_broadcast", SubgroupKind::QuadBroadcast(0)),
    ("quad_swap_horizontal", SubgroupKind::QuadSwap(QuadDirection::Horizontal)),
    ("quad_swap_vertical", SubgroupKind::QuadSwap(QuadDirection::Vertical)),
    ("quad_swap_diagonal", SubgroupKind::QuadSwap(QuadDirection::Diagonal)),
    ("reduce", SubgroupKind::Arithmetic(SubgroupSpan::Reduce, ArithmeticOperation::Add)),
    ("inclusive", SubgroupKind::Arithmetic(SubgroupSpan::Inclusive, ArithmeticOperation::Add)),
    ("exclusive", SubgroupKind::Arithmetic(SubgroupSpan::Exclusive, ArithmeticOperation::Add)),
];

/// The lanes that a subgroup has at most.
const MOST_LANES: u32 = 64;

impl Parser<'_> {
    /// Reads what follows `sg`.
    pub(super) fn subgroup_operation(
        &mut self,
        thread: ThreadId,
        modifiers: &mut Modifiers<'_>,
    ) -> Parsed<InstructionKind> {
        let Some(mut kind) = modifiers.take(SUBGROUP_OPERATIONS) else {
            let (word, span) = modifiers.peek().unwrap_or(("", modifiers.last()));
            return Err(SubgroupError::UnknownOperation { word: word.to_owned(), span }.into());
        };
        if let SubgroupKind::Arithmetic(span, operation) = &mut kind {
            let word = SubgroupKind::Arithmetic(*span, *operation).word().to_owned();
            let Some(found) =
                modifiers.take(words::OPERATIONS).filter(|found| SUBGROUP_ARITHMETIC.contains(found))
            else {
                return Err(SubgroupError::MissingArithmetic { word, span: modifiers.last() }.into());
            };
            *operation = found;
        }
        modifiers.finish("a register or `unused`")?;
        let token = self.peek();
        let destination = if token.kind == TokenKind::Word && self.word(token) == UNUSED {
            self.next();
            None
        } else {
            let token = self.register_token()?;
            Some(self.use_register(thread, token)?)
        };
        self.comma()?;
        let value = match kind {
            SubgroupKind::Elect => None,
            _ => {
                let value = self.operand(thread)?;
                self.comma()?;
                Some(value)
            }
        };
        match &mut kind {
            SubgroupKind::Broadcast(number)
            | SubgroupKind::Shuffle(number)
            | SubgroupKind::ShuffleXor(number)
            | SubgroupKind::ShuffleUp(number)
            | SubgroupKind::ShuffleDown(number)
            | SubgroupKind::QuadBroadcast(number) => {
                *number = self.small_number("the number of a lane, or how far it is")?;
                self.comma()?;
            }
            SubgroupKind::Rotate { delta, cluster } => {
                *delta = self.small_number("how far the lane is")?;
                self.comma()?;
                *cluster = self.small_number("the lanes of a cluster")?;
                if !cluster.is_power_of_two() || *cluster > MOST_LANES {
                    let span = self.previous().span;
                    return Err(SubgroupError::Cluster { cluster: *cluster, span }.into());
                }
                self.comma()?;
            }
            _ => {}
        }
        let id = self.barrier_name()?;
        Ok(InstructionKind::Subgroup(SubgroupOperation { kind, destination, value, id }))
    }

    /// Reports subgroup operations whose tangle or whose result nothing determines.
    pub(super) fn check_subgroup_operations(&mut self) {
        if !self.test.has_subgroup_operations() {
            return;
        }
        let mut errors = Vec::new();
        for number in 0..self.test.threads.len() {
            let thread = ThreadId(number as u16);
            check_flow(self.test.thread(thread), &mut errors);
            for (at, instruction) in self.test.thread(thread).instructions.iter().enumerate() {
                if let Some(operation) = instruction.kind.subgroup_operation() {
                    errors.extend(mistake(&self.test, thread, at, operation, instruction.span));
                }
            }
        }
        errors.into_iter().for_each(|error| self.errors.push(error.into()));
    }
}

/// Reports operations in loops, and those that jumps skip without making blocks.
fn check_flow(thread: &Thread, errors: &mut Vec<SubgroupError>) {
    let code = &thread.instructions;
    // Every jump: where it is, where it goes, and whether it makes a block.
    let jumps: Vec<(usize, usize, bool)> = (0..)
        .zip(code)
        .filter_map(|(from, jump)| match &jump.kind {
            InstructionKind::Flow(Flow::Branch { target, .. }) => {
                Some((from, thread.place_of(*target)?, true))
            }
            InstructionKind::Flow(Flow::Goto(target) | Flow::BranchIf { target, .. }) => {
                Some((from, thread.place_of(*target)?, false))
            }
            _ => None,
        })
        .collect();
    for (at, instruction) in code.iter().enumerate() {
        if instruction.kind.subgroup_operation().is_none() {
            continue;
        }
        let span = instruction.span;
        let around = jumps.iter().filter(|(from, to, _)| from.min(to) < &at && &at < from.max(to));
        for (from, to, conditional) in around {
            if to < from {
                errors.push(SubgroupError::Repeats { span });
                break;
            }
            let crosses = jumps.iter().any(|(other, target, _)| {
                let inside = from < other && other < to;
                let goes_inside = from < target && target < to;
                other != from && (inside != goes_inside || target == to)
            });
            if !conditional || crosses {
                errors.push(SubgroupError::NoBlock { span });
                break;
            }
        }
    }
}

fn mistake(
    test: &Test,
    thread: ThreadId,
    at: usize,
    operation: &SubgroupOperation,
    span: Span,
) -> Option<SubgroupError> {
    let id = operation.id.clone();
    let own = test.thread(thread);
    if find(own, &id).is_some_and(|(first, _)| first < at) {
        return Some(SubgroupError::Repeated { id, span });
    }
    let blocks = own.blocks();
    let around = nest(&blocks, at);
    for other in test.threads.iter().take(usize::from(thread.0)) {
        let Some((place, known)) = find(other, &id) else { continue };
        let number = other.number;
        if !other.place.shares(own.place, Scope::Subgroup) {
            return Some(SubgroupError::TwoSubgroups { id, other: number, span });
        }
        if !known.kind.is_one_instruction(operation.kind) {
            return Some(SubgroupError::TwoOperations { id, other: number, span });
        }
        let others = other.blocks();
        let there = nest(&others, place);
        let names = |thread: &Thread, nest: &[&GuardedBlock]| -> Vec<String> {
            nest.iter().map(|block| thread.label_name(block.label).to_owned()).collect()
        };
        if names(own, &around) != names(other, &there) {
            let label = names(own, &around).pop().or_else(|| names(other, &there).pop()).unwrap_or_default();
            return Some(SubgroupError::TwoBlocks { label, other: number, span });
        }
        if let (Some(block), Some(same)) = (around.first(), there.first())
            && shape(own, &block.parts) != shape(other, &same.parts)
        {
            let label = own.label_name(block.label).to_owned();
            return Some(SubgroupError::TwoBlocks { label, other: number, span });
        }
    }
    let registers = operation.destination.into_iter().chain(match operation.value {
        Some(Operand::Register(register)) => Some(register),
        Some(Operand::Constant(_)) | None => None,
    });
    for register in registers {
        let bits = test.register_type(thread, register).bits();
        if bits != 32 {
            return Some(SubgroupError::Width { bits, span });
        }
    }
    let tangle = test.tangle(thread, &id);
    let source = operation.kind.source(test.lane(thread)).filter(|_| operation.destination.is_some())?;
    if tangle.iter().any(|lane| lane.lane == source) {
        let skipped = source != test.lane(thread) && !around.is_empty();
        return skipped.then_some(SubgroupError::SkippedSource { source_lane: source, id, span });
    }
    let source_lane = if source == u32::MAX { "beyond the ends".to_owned() } else { source.to_string() };
    Some(SubgroupError::UndefinedResult { source_lane, id, lanes: listed(&tangle), span })
}

/// The blocks around an instruction, from the outermost one on.
fn nest(blocks: &[GuardedBlock], at: usize) -> Vec<&GuardedBlock> {
    let mut found = Vec::new();
    let mut next = blocks.iter().find(|block| block.contains(at));
    while let Some(block) = next {
        found.push(block);
        next = block.parts.iter().find_map(|part| match part {
            BlockPart::Block(inner) if inner.contains(at) => Some(inner),
            _ => None,
        });
    }
    found
}

/// The operations and blocks among the parts of a block, by instance and label.
fn shape(thread: &Thread, parts: &[BlockPart]) -> String {
    let instance = |at: usize| thread.instructions.get(at).and_then(|found| found.kind.subgroup_operation());
    let of = |part: &BlockPart| match part {
        BlockPart::Own(_) => String::new(),
        BlockPart::Operation(at) => instance(*at).map_or(String::new(), |found| format!("{};", found.id)),
        BlockPart::Block(block) => {
            format!("{}{{{}}}", thread.label_name(block.label), shape(thread, &block.parts))
        }
    };
    parts.iter().map(of).collect()
}

/// The operation of a thread with this instance, and where it stands.
fn find<'t>(thread: &'t Thread, id: &str) -> Option<(usize, &'t SubgroupOperation)> {
    let mut operations = thread.instructions.iter().enumerate();
    operations
        .find_map(|(at, i)| Some((at, i.kind.subgroup_operation().filter(|operation| operation.id == id)?)))
}

fn listed(tangle: &[TangledLane]) -> String {
    tangle.iter().map(|lane| lane.lane.to_string()).collect::<Vec<_>>().join(", ")
}

/// The text of an operation, with its registers and values in words.
pub(super) fn text(operation: &SubgroupOperation, destination: Option<&str>, value: Option<&str>) -> String {
    let arithmetic = match operation.kind {
        SubgroupKind::Arithmetic(_, arithmetic) => format!(".{}", arithmetic.keyword()),
        _ => String::new(),
    };
    let mut text = format!("sg.{}{arithmetic} {}", operation.kind.word(), destination.unwrap_or(UNUSED));
    let numbers = operation.kind.numbers();
    let numbers = numbers.iter().map(u32::to_string);
    for part in value.map(str::to_owned).into_iter().chain(numbers).chain([operation.id.clone()]) {
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}
