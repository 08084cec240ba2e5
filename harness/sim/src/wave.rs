//! A wave: up to 64 invocations that execute one program in lockstep, with their memory operations in flight.
//! Long because instructions, control flow and the window of memory operations share one state.
//!
//! The front end runs in order and issues memory operations to a window; the machine performs them out of
//! order, lane by lane. The front end waits only for values that it needs, so loads complete late and stores
//! sink. No operation is issued past a branch with an unknown condition, so no value appears out of thin air.

mod address;
mod arithmetic;
mod built_ins;
mod context;
mod group;

use spirv_reader::Stage;

use crate::memory::CachePath;
use crate::program::{
    Access, Edge, LANES, LaneValues, MemoryOp, MemoryOpKind, NONE, Op, Program, Register, Switch,
    WaitCondition,
};
use crate::random::lanes_in_mask;
pub(crate) use context::WaveContext;
pub(crate) use group::{LaneOperand, LaneStatus, compute_group_result};

/// The maximal number of memory operations in flight per wave.
const WINDOW: usize = 32;
/// Blocks that a wave runs without a break.
const BLOCKS_AT_ONCE: u64 = 64;
const NO_SLOT: u8 = u8::MAX;

/// A memory operation in flight.
#[derive(Clone, Debug)]
pub(crate) struct InFlightOp {
    /// The index into [`Program::memory`].
    pub memory: u16,
    /// Lanes that execute it.
    pub active: u64,
    /// Lanes that have performed it.
    pub performed: u64,
    /// Slots that every lane waits for.
    awaited_slots: u32,
    /// Slots that some lanes wait for.
    awaited_slots_by_lane: Vec<(u8, u64)>,
    /// The register of the stored value if it was still being loaded at issue.
    pending_value: Register,
    /// The destination of a load.
    to: Register,
    address: LaneValues,
    value: LaneValues,
    compare: LaneValues,
    /// True for eight-byte accesses, whose high halves follow.
    is_wide: bool,
    high_value: LaneValues,
    high_compare: LaneValues,
}

impl InFlightOp {
    fn new() -> InFlightOp {
        InFlightOp {
            memory: 0,
            active: 0,
            performed: 0,
            awaited_slots: 0,
            awaited_slots_by_lane: Vec::new(),
            pending_value: NONE,
            to: NONE,
            address: [0; LANES],
            value: [0; LANES],
            compare: [0; LANES],
            is_wide: false,
            high_value: [0; LANES],
            high_compare: [0; LANES],
        }
    }
}

/// The state that a dispatch shares with its invocations.
#[derive(Clone, Debug)]
pub(crate) struct DispatchState {
    pub program: usize,
    pub parameters: Vec<u32>,
    /// The bound reference of each reference of the program.
    pub bindings: Vec<BoundReference>,
    /// The first workgroup, numbered over the whole submission.
    pub first_workgroup: u32,
    /// The number of workgroups in x.
    pub workgroups: u32,
}

/// A reference of a program with its memory range.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BoundReference {
    /// The number of the reference in the caches.
    pub reference: usize,
    /// The address of the first word.
    pub base: u32,
    /// Words between the copies of consecutive workgroups; 0 for buffers.
    pub workgroup_stride: u32,
    /// The size in words.
    pub words: u32,
    /// Texels of a row; 0 unless it is a two-dimensional image.
    pub width: u32,
    /// True if stores go straight to memory.
    pub has_direct_stores: bool,
}

/// A wave of up to 64 invocations.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    pub dispatch: usize,
    /// The lanes that exist.
    pub lanes: u64,
    /// The caches of each lane.
    pub paths: Vec<CachePath>,
    /// Position of each lane: workgroup within the dispatch, index within the workgroup, subgroup, lane. A
    /// vertex has its number and zeros; a fragment has x, y, and 1 for a helper.
    pub places: Vec<[u32; 4]>,
    /// Helper lanes, whose stores and atomics have no effect.
    pub helpers: u64,
    /// True if its invocations are vertices.
    pub is_vertex_wave: bool,
    /// The number of completed rounds.
    pub rounds: u32,
    /// True if it does not wait for the rounds of other waves.
    ignores_rounds: bool,
    /// Back-edge counts of the enclosing loops, for a wave of one invocation.
    iterations: Vec<u32>,
    /// True if all lanes have returned.
    pub ended: bool,
    registers: Vec<LaneValues>,
    /// The window slot that fills each register.
    producers: Vec<u8>,
    program_counter: u32,
    execution_mask: u64,
    /// Lanes that wait at the start of a block, by block.
    divergent_lanes: Vec<(u32, u64)>,
    /// By lane: a hash of the branches taken since control flow was last uniform. Lanes with equal hashes
    /// have taken one path or have reconverged.
    branch_histories: Vec<u64>,
    window: Vec<InFlightOp>,
    /// Occupied slots, oldest first.
    order: Vec<u8>,
}

impl Wave {
    /// Returns the lanes of a slot that have not performed it yet.
    pub fn pending_lanes(&self, slot: u8) -> u64 {
        self.window.get(usize::from(slot)).map_or(0, |entry| entry.active & !entry.performed)
    }

    /// Creates a wave at the start of its program.
    pub fn new(dispatch: usize, program: &Program, paths: Vec<CachePath>, places: Vec<[u32; 4]>) -> Wave {
        let count = places.len();
        let lanes = if count >= LANES { u64::MAX } else { (1 << count) - 1 };
        let mut registers = vec![[0; LANES]; program.registers];
        for (register, value) in &program.constants {
            if let Some(register) = registers.get_mut(*register as usize) {
                *register = [*value; LANES];
            }
        }
        Wave {
            dispatch,
            lanes,
            paths,
            places,
            helpers: 0,
            is_vertex_wave: program.stage == Stage::Vertex,
            rounds: 0,
            // Fragments wait for fragments of other waves whose sections come earlier.
            ignores_rounds: program.independent_invocations || program.interlock_is_ordered.is_some(),
            iterations: if program.independent_invocations {
                vec![0; program.loops.len()]
            } else {
                Vec::new()
            },
            ended: lanes == 0,
            registers,
            producers: vec![NO_SLOT; program.registers],
            program_counter: 0,
            execution_mask: lanes,
            divergent_lanes: Vec::new(),
            branch_histories: vec![0; if program.nested_blocks.is_empty() { 0 } else { count }],
            window: vec![InFlightOp::new(); WINDOW],
            order: Vec::new(),
        }
    }

    /// Returns true if the front end may run before other waves finish their rounds.
    pub fn is_within_round(&self, last_round: u32) -> bool {
        !self.ended && (self.ignores_rounds || self.rounds <= last_round)
    }

    /// Returns true if memory operations are in flight.
    pub fn is_busy(&self) -> bool {
        !self.order.is_empty()
    }

    /// Runs until a value is missing, the window is full, or a round has ended. Returns true if it executed
    /// anything.
    pub fn run_front_end(&mut self, context: &mut WaveContext<'_>) -> bool {
        let program = context.program;
        let mut moved = false;
        // A spinning wave yields, so that others advance and the caller can check the time.
        let enough = context.budget.saturating_sub(BLOCKS_AT_ONCE);
        while self.is_within_round(context.last_round) && *context.budget > enough {
            let Some(op) = program.ops.get(self.program_counter as usize) else {
                self.ended = true;
                return true;
            };
            match *op {
                Op::Await { register } => {
                    if self.is_pending(register, self.execution_mask) {
                        return moved;
                    }
                }
                Op::Memory(access) => {
                    if !self.issue_access(access, context) {
                        return moved;
                    }
                }
                // The machine executes it for the whole subgroup.
                Op::Group(_) => return moved,
                Op::Jump { edge } => {
                    self.branch_to(&[(edge, self.execution_mask)], false, context);
                    moved = true;
                    continue;
                }
                Op::Branch { condition, yes, no } => {
                    let taken = self.true_lanes(condition) & self.execution_mask;
                    self.branch_to(&[(yes, taken), (no, self.execution_mask & !taken)], true, context);
                    moved = true;
                    continue;
                }
                Op::Switch(switch) => {
                    self.issue_switch(switch, context);
                    moved = true;
                    continue;
                }
                Op::Return => {
                    self.execution_mask = 0;
                    self.select_parked_lanes(context);
                    moved = true;
                    continue;
                }
                other => self.execute_op(other, context),
            }
            self.program_counter += 1;
            moved = true;
        }
        moved
    }

    fn issue_switch(&mut self, switch: Switch, context: &mut WaveContext<'_>) {
        let Switch { selector, is_wide, cases, otherwise } = switch;
        let program = context.program;
        let Some(low) = self.registers.get(selector as usize) else { return };
        let high = self.registers.get(selector as usize + 1).filter(|_| is_wide);
        let all = program.cases.get(cases.0 as usize..cases.1 as usize).unwrap_or_default();
        let mut left = self.execution_mask;
        let mut targets: Vec<(u32, u64)> = Vec::with_capacity(2);
        for (literal, edge) in all {
            if left == 0 {
                break;
            }
            let mut found = 0;
            for (lane, low) in low.iter().enumerate() {
                let high = high.and_then(|high| high.get(lane)).map_or(0, |high| u64::from(*high) << 32);
                found |= u64::from(high | u64::from(*low) == *literal) << lane;
            }
            found &= left;
            if found != 0 {
                left &= !found;
                targets.push((*edge, found));
            }
        }
        if left != 0 {
            targets.push((otherwise, left));
        }
        self.branch_to(&targets, true, context);
    }

    fn true_lanes(&self, register: Register) -> u64 {
        let Some(values) = self.registers.get(register as usize) else { return 0 };
        let mut mask = 0;
        for (lane, value) in values.iter().enumerate() {
            mask |= u64::from(*value != 0) << lane;
        }
        mask
    }

    /// Follows edges, each with its lanes; the other lanes of the mask end. A branch diverges lanes even if
    /// this whole wave takes one edge, since other lanes of the subgroup are in other waves.
    fn branch_to(&mut self, targets: &[(u32, u64)], branches: bool, context: &mut WaveContext<'_>) {
        let program = context.program;
        *context.budget = context.budget.saturating_sub(1);
        let mut ended_round = false;
        for (edge, mask) in targets.iter().filter(|(_, mask)| *mask != 0) {
            let Some(edge) = program.edges.get(*edge as usize) else { continue };
            self.apply_edge_copies(program, edge, *mask);
            self.count_iteration(program, edge.to);
            self.diverge_lanes(program, edge.to, *mask, branches);
            ended_round |= edge.ends_round;
            let limited = edge.ends_round && self.rounds >= context.loop_limit;
            if limited {
                continue;
            }
            // Lanes that arrive at one block from different edges continue together.
            match self.divergent_lanes.iter_mut().find(|(block, _)| *block == edge.to) {
                Some((_, parked)) => *parked |= *mask,
                None => self.divergent_lanes.push((edge.to, *mask)),
            }
        }
        self.execution_mask = 0;
        if ended_round {
            self.rounds += 1;
        }
        self.select_parked_lanes(context);
    }

    /// Counts loop iterations when a wave of one invocation enters a block.
    fn count_iteration(&mut self, program: &Program, to: u32) {
        if self.iterations.is_empty() {
            return;
        }
        let from =
            (program.blocks.partition_point(|start| *start <= self.program_counter) as u32).saturating_sub(1);
        for (iteration, (first, last)) in self.iterations.iter_mut().zip(&program.loops) {
            let inside = |block: u32| *first <= block && block <= *last;
            if !inside(from) {
                *iteration = 0;
            } else if to == *first {
                *iteration = iteration.wrapping_add(1);
            }
        }
    }

    /// Selects the lanes at the first block, so that lagging lanes catch up before the others advance.
    fn select_parked_lanes(&mut self, context: &mut WaveContext<'_>) {
        // Within a round blocks execute in numeric order, so the lanes at the lowest block are the
        // furthest behind.
        let lowest = self.divergent_lanes.iter().enumerate().min_by_key(|(_, (block, _))| *block);
        let Some((index, (block, mask))) = lowest.map(|(index, group)| (index, *group)) else {
            self.ended = true;
            return;
        };
        self.divergent_lanes.swap_remove(index);
        self.execution_mask = mask;
        self.program_counter = context.program.blocks.get(block as usize).copied().unwrap_or(u32::MAX);
    }

    fn apply_edge_copies(&mut self, program: &Program, edge: &Edge, mask: u64) {
        let copies = program.copies.get(edge.copies.0 as usize..edge.copies.1 as usize).unwrap_or_default();
        // Phis read their operands in parallel: copies that overwrite each other's sources need a temporary.
        if edge.needs_temporaries {
            let values: Vec<LaneValues> = copies
                .iter()
                .map(|(_, from)| self.registers.get(*from as usize).copied().unwrap_or([0; LANES]))
                .collect();
            for ((to, _), value) in copies.iter().zip(&values) {
                self.write_masked(*to, value, mask);
            }
        } else {
            for (to, from) in copies {
                let value = self.registers.get(*from as usize).copied().unwrap_or([0; LANES]);
                self.write_masked(*to, &value, mask);
            }
        }
    }

    fn write_masked(&mut self, to: Register, value: &LaneValues, mask: u64) {
        let all = mask == self.lanes;
        let Some(to) = self.registers.get_mut(to as usize) else { return };
        if all {
            *to = *value;
        } else {
            for (lane, (to, value)) in to.iter_mut().zip(value).enumerate() {
                // All ones in inactive lanes: a branch-free select, which vectorizes.
                let keep = ((mask >> lane) & 1).wrapping_sub(1) as u32;
                *to = (*to & keep) | (*value & !keep);
            }
        }
    }

    fn is_pending(&self, register: Register, mask: u64) -> bool {
        let slot = self.producers.get(register as usize).copied().unwrap_or(NO_SLOT);
        self.window.get(usize::from(slot)).is_some_and(|entry| entry.active & !entry.performed & mask != 0)
    }

    fn execute_op(&mut self, op: Op, context: &mut WaveContext<'_>) {
        match op {
            Op::Binary { op, to, left, right } => self.execute_binary(op, to, left, right),
            Op::Select { to, condition, yes, no } => {
                let Some((sources, to)) = self.split_destination(to) else { return };
                let (Some(condition), Some(yes), Some(no)) = (
                    register_lanes(sources, condition),
                    register_lanes(sources, yes),
                    register_lanes(sources, no),
                ) else {
                    return;
                };
                for lane in 0..LANES {
                    to[lane] = if condition[lane] != 0 { yes[lane] } else { no[lane] };
                }
            }
            Op::Assign { to, from } => {
                let value = self.registers.get(from as usize).copied().unwrap_or([0; LANES]);
                let mask = self.execution_mask;
                self.write_masked(to, &value, mask);
            }
            Op::Copy { to, from } => {
                let value = self.registers.get(from as usize).copied().unwrap_or([0; LANES]);
                if let Some(to) = self.registers.get_mut(to as usize) {
                    *to = value;
                }
            }
            Op::Parameter { to, word, index } => self.load_push_constant(to, word, index, context),
            Op::BuiltIn { to, built_in } => self.load_built_in(to, built_in, context),
            Op::AddressOffset { to, from, bytes } => self.compute_pointer(to, from, bytes, context),
            Op::Address { to, reference, index, scale, offset, bytes } => {
                self.compute_address(to, reference, index, (scale, offset, bytes), context);
            }
            Op::Texel { to, reference, column, row } => {
                self.compute_texel_address(to, reference, column, row, context);
            }
            Op::Apply { number } => {
                if let Some(application) = context.program.number_instructions.get(number as usize) {
                    self.apply_instruction(application);
                }
            }
            Op::ReadIndexed { .. } | Op::WriteIndexed { .. } => self.execute_indexed(op),
            Op::ArrayLength { to, reference, offset, stride } => {
                let bound = context.dispatch.bindings.get(usize::from(reference));
                let bytes = bound.map_or(0, |bound| (bound.words * 4).saturating_sub(offset));
                if let Some(to) = self.registers.get_mut(to as usize) {
                    *to = [bytes / stride.max(1); LANES];
                }
            }
            Op::ImageSize { to, reference, rows } => {
                let bound = context.dispatch.bindings.get(usize::from(reference));
                let (width, words) = bound.map_or((0, 0), |bound| (bound.width, bound.words));
                let sizes = if rows { vec![width, words / width.max(1)] } else { vec![words] };
                for (to, size) in (to..).zip(sizes) {
                    if let Some(to) = self.registers.get_mut(to as usize) {
                        *to = [size; LANES];
                    }
                }
            }
            Op::Ballot { kind, to, ballot, argument } => self.execute_ballot(kind, to, ballot, argument),
            _ => {}
        }
    }

    /// Issues an operation to the window; returns false if there is no free slot, or a register is still in
    /// use.
    fn issue_access(&mut self, access: Access, context: &mut WaveContext<'_>) -> bool {
        let program = context.program;
        let Some(op) = program.memory.get(usize::from(access.memory)) else { return true };
        let bound = context.dispatch.bindings.get(usize::from(op.reference)).copied().unwrap_or_default();
        // No other reference accesses this memory, so a direct store cannot be distinguished from a cached one.
        if bound.has_direct_stores && op.kind == MemoryOpKind::PlainStore {
            if self.is_pending(access.value, self.execution_mask) {
                return false;
            }
            self.store_directly(access, context);
            return true;
        }
        let Some(slot) = (0..WINDOW as u8).find(|slot| !self.order.contains(slot)) else { return false };
        // A second load into a register in flight could complete first (write-after-write hazard).
        let is_in_use = |register: Register| {
            register != NONE
                && self.order.iter().any(|slot| {
                    let entry = &self.window[usize::from(*slot)];
                    entry.to == register || entry.pending_value == register
                })
        };
        if is_in_use(access.to) {
            return false;
        }
        // A store may be issued before its value is loaded; the window performs it after the load
        // (`awaited_slots`).
        let is_value_pending = access.value != NONE && self.is_pending(access.value, self.execution_mask);
        if access.compare != NONE && self.is_pending(access.compare, self.execution_mask) {
            return false;
        }
        let zeros = [0; LANES];
        let address = self.registers.get(access.address as usize).unwrap_or(&zeros);
        let mut before = 0;
        let mut before_in = std::mem::take(&mut self.window[usize::from(slot)].awaited_slots_by_lane);
        before_in.clear();
        if is_value_pending {
            let producer = self.producers.get(access.value as usize).copied().unwrap_or(NO_SLOT);
            before |= 1u32.checked_shl(producer.into()).unwrap_or(0);
        }
        for earlier_slot in &self.order {
            let earlier = &self.window[usize::from(*earlier_slot)];
            // Lanes that have performed the earlier operation impose no order.
            let both = earlier.active & !earlier.performed & self.execution_mask;
            if both == 0 {
                continue;
            }
            // A dense matrix: a row for the earlier operation, a column for the later one.
            let pair = usize::from(earlier.memory) * program.memory.len() + usize::from(access.memory);
            match program.wait_conditions.get(pair) {
                Some(WaitCondition::Always) => before |= 1 << earlier_slot,
                Some(WaitCondition::SameAddress) => {
                    let before = program.memory.get(usize::from(earlier.memory)).map_or(4, |op| op.bytes);
                    let same = overlapping_lanes(&earlier.address, address, before, op.bytes);
                    if same & both != 0 {
                        before_in.push((*earlier_slot, same & both));
                    }
                }
                Some(WaitCondition::Never) | None => {}
            }
        }
        let entry = &mut self.window[usize::from(slot)];
        entry.memory = access.memory;
        entry.is_wide = op.bytes > 4;
        entry.active = self.execution_mask;
        entry.performed = 0;
        entry.awaited_slots = before;
        entry.awaited_slots_by_lane = before_in;
        entry.to = access.to;
        entry.pending_value = if is_value_pending { access.value } else { NONE };
        // The window copies the operands, because registers may change before the operation is
        // performed.
        let registers = [
            (&mut entry.address, access.address),
            (&mut entry.value, access.value),
            (&mut entry.compare, access.compare),
            (&mut entry.high_value, access.value.saturating_add(1)),
            (&mut entry.high_compare, access.compare.saturating_add(1)),
        ];
        // Operands of eight bytes occupy two registers.
        let used = if op.bytes > 4 { 5 } else { 3 };
        for (to, from) in registers.into_iter().take(used) {
            if let Some(values) = self.registers.get(from as usize) {
                *to = *values;
            }
        }
        self.order.push(slot);
        if let Some(producer) = self.producers.get_mut(access.to as usize) {
            *producer = slot;
        }
        if op.is_write() {
            *context.stored = true;
        }
        true
    }

    fn store_directly(&mut self, access: Access, context: &mut WaveContext<'_>) {
        *context.stored = true;
        let registers = &self.registers;
        let (Some(addresses), Some(values)) =
            (registers.get(access.address as usize), registers.get(access.value as usize))
        else {
            return;
        };
        let words = &mut context.memory.words;
        for lane in lanes_in_mask(self.execution_mask & !self.helpers) {
            let address = (addresses[lane] >> 2) as usize;
            // Word 0 represents out-of-bounds addresses, whose stores are discarded.
            if let Some(word) = words.get_mut(address).filter(|_| address != 0) {
                *word = values[lane];
                if context.corrupts_results && context.random.chance(4) {
                    *word ^= 1 << context.random.below(32);
                }
            }
        }
    }

    /// Collects the operations in flight, oldest first, with the lanes that may perform now.
    pub fn collect_ready(&self, out: &mut Vec<(u8, u64)>) {
        out.clear();
        for slot in &self.order {
            let entry = &self.window[usize::from(*slot)];
            let mut mask = entry.active & !entry.performed;
            for before in lanes_in_mask(entry.awaited_slots.into()) {
                // A lane waits only if it executes the earlier operation and has not performed it.
                let before = &self.window[before];
                mask &= before.performed | !before.active;
            }
            for (before, only) in &entry.awaited_slots_by_lane {
                let before = &self.window[usize::from(*before)];
                mask &= before.performed | !before.active | !only;
            }
            if mask != 0 {
                out.push((*slot, mask));
            }
        }
    }

    /// Returns the word address, value and comparand of a lane.
    #[inline]
    pub fn word_operands(&self, slot: u8, lane: usize) -> (u32, u32, u32) {
        let entry = &self.window[usize::from(slot)];
        // A value that was still being loaded at issue is complete by now: the window waits for its producer.
        let value = match self.registers.get(entry.pending_value as usize) {
            Some(late) => late[lane],
            None => entry.value[lane],
        };
        (entry.address[lane] >> 2, value, entry.compare[lane])
    }

    /// Returns the byte address, value and comparand of a lane, of up to eight bytes.
    pub fn wide_operands(&self, slot: u8, lane: usize) -> (u32, u64, u64) {
        let entry = &self.window[usize::from(slot)];
        let late = entry.pending_value;
        if !entry.is_wide {
            let (_, value, compare) = self.word_operands(slot, lane);
            return (entry.address[lane], value.into(), compare.into());
        }
        let high = match self.registers.get(late.saturating_add(1) as usize) {
            Some(high) if late != NONE => high[lane],
            _ => entry.high_value[lane],
        };
        let (_, low, compare) = self.word_operands(slot, lane);
        (entry.address[lane], join_halves(low, high), join_halves(compare, entry.high_compare[lane]))
    }

    /// Writes a loaded value to its register.
    #[inline]
    pub fn write_loaded(&mut self, slot: u8, lane: usize, value: u32) {
        let to = self.window[usize::from(slot)].to;
        if let Some(to) = self.registers.get_mut(to as usize) {
            to[lane] = value;
        }
    }

    /// Writes a loaded value of `bytes` bytes to its registers.
    pub fn write_loaded_wide(&mut self, slot: u8, lane: usize, value: u64, bytes: u8) {
        self.write_loaded(slot, lane, value as u32);
        let to = self.window[usize::from(slot)].to;
        if bytes > 4
            && to != NONE
            && let Some(high) = self.registers.get_mut(to as usize + 1)
        {
            high[lane] = (value >> 32) as u32;
        }
    }

    /// Marks an operation as performed in some lanes; frees its slot after the last lane.
    pub fn mark_performed(&mut self, slot: u8, mask: u64) {
        let entry = &mut self.window[usize::from(slot)];
        entry.performed |= mask;
        if entry.active & !entry.performed != 0 {
            return;
        }
        let to = entry.to;
        entry.to = NONE;
        entry.pending_value = NONE;
        if let Some(producer) = self.producers.get_mut(to as usize).filter(|producer| **producer == slot) {
            *producer = NO_SLOT;
        }
        self.order.retain(|used| *used != slot);
        // The slot will be used again, so no remaining operation may keep a dependence on it.
        for other in &self.order {
            let other = &mut self.window[usize::from(*other)];
            other.awaited_slots &= !(1 << slot);
            other.awaited_slots_by_lane.retain(|(before, _)| *before != slot);
        }
    }

    /// Returns the occupied slots, one bit each.
    pub fn occupied_slots(&self) -> u32 {
        self.order.iter().fold(0, |slots, slot| slots | 1 << slot)
    }

    /// Hashes the state that determines how the only invocation continues: position, `registers`, and
    /// operations in flight.
    pub fn fingerprint(&self, registers: &[Register], hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        (self.program_counter, self.execution_mask, self.ended).hash(hasher);
        self.divergent_lanes.hash(hasher);
        for register in registers {
            self.registers.get(*register as usize).map(|values| values[0]).hash(hasher);
        }
        for slot in &self.order {
            let entry = &self.window[usize::from(*slot)];
            (entry.memory, entry.performed, entry.pending_value, self.wide_operands(*slot, 0)).hash(hasher);
        }
    }

    /// Returns the index of a slot's operation in [`Program::memory`].
    pub fn operation_index(&self, slot: u8) -> u16 {
        self.window[usize::from(slot)].memory
    }

    pub fn operation<'p>(&self, slot: u8, program: &'p Program) -> Option<&'p MemoryOp> {
        program.memory.get(usize::from(self.window[usize::from(slot)].memory))
    }
}

fn register_lanes(registers: &[LaneValues], register: Register) -> Option<&LaneValues> {
    registers.get(register as usize)
}

fn join_halves(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the lanes whose accesses share a word.
fn overlapping_lanes(earlier: &LaneValues, later: &LaneValues, before: u8, after: u8) -> u64 {
    let mut same = 0;
    if before == 4 && after == 4 {
        for (lane, (earlier, later)) in earlier.iter().zip(later).enumerate() {
            same |= u64::from(earlier == later) << lane;
        }
        return same;
    }
    let words = |address: u32, bytes: u8| (address >> 2, address.saturating_add(u32::from(bytes) - 1) >> 2);
    for (lane, (earlier, later)) in earlier.iter().zip(later).enumerate() {
        let ((first, last), (from, to)) = (words(*earlier, before.max(1)), words(*later, after.max(1)));
        same |= u64::from(first <= to && from <= last) << lane;
    }
    same
}
