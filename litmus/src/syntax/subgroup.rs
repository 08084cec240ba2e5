//! Subgroup operations: parsing, printing and validity checks. Also checks subgroup barriers under branches.

use super::instruction::Modifiers;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::words::{self, Words};
use crate::error::{SubgroupError, TangledKind};
use crate::span::Span;
use crate::subgroup::{QuadDirection, SUBGROUP_ARITHMETIC, SubgroupKind, SubgroupOperation, SubgroupSpan};
use crate::tangle::{BlockPart, GuardedBlock, TangleInstance, TangledLane};
use crate::test::{
    ArithmeticOperation, ControlBarrier, Flow, InstructionKind, Operand, Scope, Test, Thread, ThreadId,
};

/// The keyword for an ignored result.
pub(super) const UNUSED: &str = "unused";

/// The words after `sg.` with their operations; arguments are parsed afterwards.
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

/// The maximum size of a subgroup.
const MOST_LANES: u32 = 64;

impl Parser<'_> {
    /// Parses the part after `sg`.
    pub(super) fn parse_subgroup_operation(
        &mut self,
        thread: ThreadId,
        modifiers: &mut Modifiers<'_>,
    ) -> Parsed<InstructionKind> {
        let Some(mut kind) = modifiers.take_one_of(SUBGROUP_OPERATIONS) else {
            let (word, span) = modifiers.peek().unwrap_or(("", modifiers.last_span()));
            return Err(SubgroupError::UnknownOperation { word: word.to_owned(), span }.into());
        };
        if let SubgroupKind::Arithmetic(span, operation) = &mut kind {
            let word = SubgroupKind::Arithmetic(*span, *operation).keyword().to_owned();
            let Some(found) =
                modifiers.take_one_of(words::OPERATIONS).filter(|found| SUBGROUP_ARITHMETIC.contains(found))
            else {
                return Err(SubgroupError::MissingArithmetic { word, span: modifiers.last_span() }.into());
            };
            *operation = found;
        }
        modifiers.expect_end("a register or `unused`")?;
        let token = self.peek();
        let destination = if token.kind == TokenKind::Word && self.token_text(token) == UNUSED {
            self.next();
            None
        } else {
            let token = self.expect_register()?;
            Some(self.use_register(thread, token)?)
        };
        self.expect_comma()?;
        let value = match kind {
            SubgroupKind::Elect => None,
            _ => {
                let value = self.parse_operand(thread)?;
                self.expect_comma()?;
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
                *number = self.parse_small_number("the number of a lane, or how far it is")?;
                self.expect_comma()?;
            }
            SubgroupKind::Rotate { delta, cluster } => {
                *delta = self.parse_small_number("how far the lane is")?;
                self.expect_comma()?;
                *cluster = self.parse_small_number("the lanes of a cluster")?;
                if !cluster.is_power_of_two() || *cluster > MOST_LANES {
                    let span = self.previous_token().span;
                    return Err(SubgroupError::ClusterSize { cluster: *cluster, span }.into());
                }
                self.expect_comma()?;
            }
            _ => {}
        }
        let id = self.parse_barrier_name()?;
        Ok(InstructionKind::Subgroup(SubgroupOperation { kind, destination, value, id }))
    }

    /// Reports subgroup operations and barriers whose tangle or result is undetermined.
    pub(super) fn check_subgroup_operations(&mut self) {
        let mut kinds = self.test.threads.iter().flat_map(|thread| &thread.instructions).map(|own| &own.kind);
        if !kinds.any(|kind| kind.tangle_instance().is_some()) {
            return;
        }
        let mut errors = Vec::new();
        for number in 0..self.test.threads.len() {
            let thread = ThreadId(number as u16);
            check_tangled_control_flow(self.test.thread(thread), &mut errors);
            for (at, instruction) in self.test.thread(thread).instructions.iter().enumerate() {
                let span = instruction.span;
                match &instruction.kind {
                    InstructionKind::Subgroup(operation) => {
                        errors.extend(find_operation_error(&self.test, thread, at, operation, span));
                    }
                    InstructionKind::ControlBarrier(barrier) => {
                        errors.extend(find_barrier_error(&self.test, thread, at, barrier, span));
                    }
                    _ => {}
                }
            }
        }
        errors.into_iter().for_each(|error| self.errors.push(error.into()));
    }
}

fn tangled_kind(instance: TangleInstance<'_>) -> TangledKind {
    match instance {
        TangleInstance::Operation(_) => TangledKind::Operation,
        TangleInstance::Barrier(_) => TangledKind::Barrier,
    }
}

/// Reports tangled instructions in loops, and those that jumps skip without forming blocks.
fn check_tangled_control_flow(thread: &Thread, errors: &mut Vec<SubgroupError>) {
    let code = &thread.instructions;
    // Every jump: its position, its target, and true if it may form a block.
    let jumps: Vec<(usize, usize, bool)> = (0..)
        .zip(code)
        .filter_map(|(from, jump)| match &jump.kind {
            InstructionKind::Flow(Flow::Branch { target, .. }) => {
                Some((from, thread.label_index(*target)?, true))
            }
            InstructionKind::Flow(Flow::Goto(target) | Flow::BranchIf { target, .. }) => {
                Some((from, thread.label_index(*target)?, false))
            }
            _ => None,
        })
        .collect();
    for (at, instruction) in code.iter().enumerate() {
        let Some(what) = instruction.kind.tangle_instance().map(tangled_kind) else { continue };
        let span = instruction.span;
        let enclosing_jumps = jumps.iter().filter(|(from, to, _)| from.min(to) < &at && &at < from.max(to));
        for (from, to, conditional) in enclosing_jumps {
            if to < from {
                errors.push(SubgroupError::InstanceInLoop { what, span });
                break;
            }
            if !conditional || thread.is_crossed(*from, *to) {
                errors.push(SubgroupError::SkippedOutsideBlock { what, span });
                break;
            }
        }
    }
}

fn find_operation_error(
    test: &Test,
    thread: ThreadId,
    at: usize,
    operation: &SubgroupOperation,
    span: Span,
) -> Option<SubgroupError> {
    let id = operation.id.clone();
    let own = test.thread(thread);
    let instance = TangleInstance::Operation(&operation.id);
    if own.instance_index(instance).is_some_and(|first| first < at) {
        return Some(SubgroupError::RepeatedInstance { what: TangledKind::Operation, id, span });
    }
    for other in test.threads.iter().take(usize::from(thread.0)) {
        let counterpart = other.instance_index(instance).and_then(|place| other.instructions.get(place));
        let Some(earlier) = counterpart.and_then(|known| known.kind.subgroup_operation()) else { continue };
        let number = other.number;
        if !other.place.shares_scope(own.place, Scope::Subgroup) {
            return Some(SubgroupError::InstanceInTwoSubgroups { id, other: number, span });
        }
        if !earlier.kind.can_be_one_instruction(operation.kind) {
            return Some(SubgroupError::DifferentOperations { id, other: number, span });
        }
    }
    if let Some(error) = find_misplaced_instance(test, thread, at, instance, span) {
        return Some(error);
    }
    let registers = operation.destination.into_iter().chain(match operation.value {
        Some(Operand::Register(register)) => Some(register),
        Some(Operand::Constant(_)) | None => None,
    });
    for register in registers {
        let bits = test.register_type(thread, register).bits();
        if bits != 32 {
            return Some(SubgroupError::ValueWidth { bits, span });
        }
    }
    let tangle = test.tangle_lanes(thread, instance);
    let source =
        operation.kind.source_lane(test.lane_index(thread)).filter(|_| operation.destination.is_some())?;
    if tangle.iter().any(|lane| lane.lane == source) {
        let in_block = own.guarded_blocks().iter().any(|block| block.contains(at));
        let skipped = source != test.lane_index(thread) && in_block;
        return skipped.then_some(SubgroupError::SkippedSource { source_lane: source, id, span });
    }
    let source_lane = if source == u32::MAX { "beyond the ends".to_owned() } else { source.to_string() };
    Some(SubgroupError::UndefinedResult { source_lane, id, lanes: list_lanes(&tangle), span })
}

/// Returns the error in a subgroup barrier inside a block, where it is one shader instruction, like an
/// operation.
fn find_barrier_error(
    test: &Test,
    thread: ThreadId,
    at: usize,
    barrier: &ControlBarrier,
    span: Span,
) -> Option<SubgroupError> {
    let id = barrier.id.clone();
    let own = test.thread(thread);
    let instance = own.instructions.get(at)?.kind.tangle_instance()?;
    let first = own.instance_index(instance)?;
    let in_block = |at: usize| own.guarded_blocks().iter().any(|block| block.contains(at));
    if first < at && (in_block(first) || in_block(at)) {
        return Some(SubgroupError::RepeatedInstance { what: TangledKind::Barrier, id, span });
    }
    for other in earlier_lanes(test, thread) {
        let counterpart = other.instance_index(instance).and_then(|place| other.instructions.get(place));
        let Some(InstructionKind::ControlBarrier(earlier)) = counterpart.map(|known| &known.kind) else {
            continue;
        };
        let is_same = (earlier.memory_scope, earlier.semantics) == (barrier.memory_scope, barrier.semantics);
        if in_block(at) && !is_same {
            return Some(SubgroupError::DifferentBarriers { id, other: other.number, span });
        }
    }
    find_misplaced_instance(test, thread, at, instance, span)
}

/// Returns the earlier threads of the same subgroup.
fn earlier_lanes(test: &Test, thread: ThreadId) -> impl Iterator<Item = &Thread> {
    let place = test.thread(thread).place;
    let before = test.threads.iter().take(usize::from(thread.0));
    before.filter(move |other| other.place.shares_scope(place, Scope::Subgroup))
}

/// Returns an error if an instruction is in another block, or in a block of another shape, than in an earlier
/// thread.
fn find_misplaced_instance(
    test: &Test,
    thread: ThreadId,
    at: usize,
    instance: TangleInstance<'_>,
    span: Span,
) -> Option<SubgroupError> {
    let own = test.thread(thread);
    let blocks = own.guarded_blocks();
    let enclosing = enclosing_blocks(&blocks, at);
    for other in earlier_lanes(test, thread) {
        let Some(place) = other.instance_index(instance) else { continue };
        let other_blocks = other.guarded_blocks();
        let other_enclosing = enclosing_blocks(&other_blocks, place);
        let names = |thread: &Thread, nest: &[&GuardedBlock]| -> Vec<String> {
            nest.iter().map(|block| thread.label_name(block.label).to_owned()).collect()
        };
        let (own_labels, other_labels) = (names(own, &enclosing), names(other, &other_enclosing));
        let number = other.number;
        if own_labels != other_labels {
            let label = own_labels.last().or(other_labels.last()).cloned().unwrap_or_default();
            return Some(SubgroupError::DifferentBlocks { label, other: number, span });
        }
        if let (Some(block), Some(other_block)) = (enclosing.first(), other_enclosing.first())
            && shape_text(own, &block.parts) != shape_text(other, &other_block.parts)
        {
            let label = own.label_name(block.label).to_owned();
            return Some(SubgroupError::DifferentBlocks { label, other: number, span });
        }
    }
    None
}

/// Returns the blocks around an instruction, outermost first.
fn enclosing_blocks(blocks: &[GuardedBlock], at: usize) -> Vec<&GuardedBlock> {
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

/// Returns the instances and blocks among the parts of a block, as text for comparison.
fn shape_text(thread: &Thread, parts: &[BlockPart]) -> String {
    let instance = |at: usize| thread.instructions.get(at).and_then(|found| found.kind.tangle_instance());
    let part_text = |part: &BlockPart| match part {
        BlockPart::LaneLocal(_) => String::new(),
        BlockPart::Converged(at) => instance(*at).map_or(String::new(), |found| format!("{found:?};")),
        BlockPart::Block(block) => {
            format!("{}{{{}}}", thread.label_name(block.label), shape_text(thread, &block.parts))
        }
    };
    parts.iter().map(part_text).collect()
}

fn list_lanes(tangle: &[TangledLane]) -> String {
    tangle.iter().map(|lane| lane.lane.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the text of an operation with the given texts of its registers and values.
pub(super) fn operation_text(
    operation: &SubgroupOperation,
    destination: Option<&str>,
    value: Option<&str>,
) -> String {
    let arithmetic = match operation.kind {
        SubgroupKind::Arithmetic(_, arithmetic) => format!(".{}", arithmetic.keyword()),
        _ => String::new(),
    };
    let mut text = format!("sg.{}{arithmetic} {}", operation.kind.keyword(), destination.unwrap_or(UNUSED));
    let numbers = operation.kind.constant_arguments();
    let numbers = numbers.iter().map(u32::to_string);
    for part in value.map(str::to_owned).into_iter().chain(numbers).chain([operation.id.clone()]) {
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}
