//! Classifies undetected edits: explains why removing an instruction may have no effect.

use std::collections::BTreeSet;
use std::fmt;

use crate::code::{MemoryUnit, WaveCode, WaveStep};
use crate::edit::EditKind;
use crate::explore::prepare_machine;
use crate::facts::{FactTable, Profile};
use crate::machine::{IsaWave, Machine};
use crate::opcode::AccessAction;
use crate::question::MachineQuestion;

/// The accesses that an instruction orders, over all waves that execute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct OrderedAccesses {
    /// Shared loads that are complete after it because of it, or the load itself for an edited bit.
    loads: bool,
    /// Shared stores and atomics that are complete after it because of it.
    stores: bool,
    /// Shared loads that may follow in the wave.
    later_loads: bool,
    /// Shared stores and atomics that may follow.
    later_stores: bool,
    /// Barriers that may follow.
    later_barriers: bool,
    /// True if something shared was complete, or a barrier was passed, before it.
    acquired: bool,
    /// True if another workgroup uses an ordered location.
    used_by_other_workgroup: bool,
    /// True if more than one location is ordered.
    several_locations: bool,
}

/// The reason why an edit is undetectable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SurvivorClass {
    /// No access that another wave could observe precedes it: it waits for private results, or for nothing.
    NothingBefore,
    /// No access that another wave could observe follows it.
    NothingAfter,
    /// It orders only stores before loads, which no acquire or release requires; combined waits do so as a
    /// side effect.
    StoresBeforeLoads,
    /// A bit of a load without an earlier acquire, so the load may return an old value.
    NothingAcquired,
    /// Other waits, and the queue of a location, order the same accesses.
    Redundant,
    /// All users of the locations share the affected cache in every placement: a workgroup's compute unit up
    /// to GFX9, its shader array.
    OneCache,
    /// It orders accesses to one location, which the location's queue keeps in order.
    OneLocation,
    /// A bit of a store: stores always reach L2, and the bit only affects the line of the same unit.
    SeparateLine,
    /// It orders shared accesses, but the outcome is forbidden for another reason.
    OtherReason,
}

impl fmt::Display for SurvivorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SurvivorClass::NothingBefore => "no shared access before it",
            SurvivorClass::NothingAfter => "no shared access after it",
            SurvivorClass::StoresBeforeLoads => "stores before loads",
            SurvivorClass::NothingAcquired => "nothing acquired before it",
            SurvivorClass::Redundant => "another wait suffices",
            SurvivorClass::OneCache => "one cache",
            SurvivorClass::OneLocation => "one location",
            SurvivorClass::SeparateLine => "separate line",
            SurvivorClass::OtherReason => "forbidden for another reason",
        })
    }
}

/// Returns the accesses that the instruction at a line of a kernel orders; `None` if the question cannot be
/// prepared.
fn find_ordered_accesses(
    question: &MachineQuestion,
    kernel: usize,
    line: u32,
    profile: Profile,
    facts: &FactTable,
) -> Option<OrderedAccesses> {
    let (machine, _) = prepare_machine(question, profile, facts).ok()?;
    let mut orders = OrderedAccesses::default();
    for wave in machine.waves.iter().filter(|wave| wave.kernel == kernel) {
        let mut traversal = CodeTraversal {
            machine: &machine,
            wave,
            line,
            orders: &mut orders,
            cells: BTreeSet::new(),
            is_bit_edit: false,
        };
        traversal.traverse_from(0, false, false);
        let cells = traversal.cells;
        orders.several_locations |= cells.len() > 1;
        orders.used_by_other_workgroup |=
            cells.iter().any(|cell| is_used_by_other_workgroup(&machine, wave.workgroup, *cell));
    }
    Some(orders)
}

/// Returns the class of an undetected edit of a kernel; `None` if a question cannot be prepared.
///
/// `edited` is the question with the edit.
pub fn classify_survivor(
    question: &MachineQuestion,
    edited: &MachineQuestion,
    (kernel, edited_line, kind): (usize, u32, EditKind),
    profile: Profile,
    facts: &FactTable,
) -> Option<SurvivorClass> {
    let orders = find_ordered_accesses(question, kernel, edited_line, profile, facts)?;
    let generation = question.family.generation();
    Some(match kind {
        EditKind::StoreBit => SurvivorClass::SeparateLine,
        EditKind::LoadBit | EditKind::LoadArrayBit => {
            // From GFX10 on, the waves of a workgroup may be on two compute units, but they share an array.
            let one_cache = kind == EditKind::LoadArrayBit || !generation.has_wgp_mode();
            classify_load_bit(&orders, one_cache)
        }
        _ => match classify_wait(&orders, kind == EditKind::VectorWait && !generation.has_wgp_mode()) {
            SurvivorClass::OtherReason
                if unordered_pairs(question, profile, facts)? == unordered_pairs(edited, profile, facts)? =>
            {
                SurvivorClass::Redundant
            }
            class => class,
        },
    })
}

/// Returns the class of a wait or barrier by the accesses that it orders.
///
/// `one_cache` is true if it waits for vector memory and a workgroup's waves share their vector cache.
fn classify_wait(orders: &OrderedAccesses, one_cache: bool) -> SurvivorClass {
    if !orders.loads && !orders.stores {
        SurvivorClass::NothingBefore
    } else if !orders.later_loads && !orders.later_stores && !orders.later_barriers {
        SurvivorClass::NothingAfter
    } else if !orders.loads && !orders.later_stores && !orders.later_barriers {
        SurvivorClass::StoresBeforeLoads
    } else if !orders.several_locations && !orders.later_barriers {
        SurvivorClass::OneLocation
    } else if one_cache && !orders.used_by_other_workgroup {
        SurvivorClass::OneCache
    } else {
        SurvivorClass::OtherReason
    }
}

/// Returns the class of a load bit; `one_cache` is true if it concerns a cache that the workgroup's waves
/// share.
fn classify_load_bit(orders: &OrderedAccesses, one_cache: bool) -> SurvivorClass {
    if !orders.loads {
        SurvivorClass::NothingBefore
    } else if !orders.acquired {
        SurvivorClass::NothingAcquired
    } else if one_cache && !orders.used_by_other_workgroup {
        SurvivorClass::OneCache
    } else {
        SurvivorClass::OtherReason
    }
}

/// Pairs of lines of a kernel: a shared access, and a later one to another location or a barrier, without a
/// wait in between.
type UnorderedPairs = BTreeSet<(usize, u32, u32)>;

fn unordered_pairs(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Option<UnorderedPairs> {
    let (machine, _) = prepare_machine(question, profile, facts).ok()?;
    let mut pairs = UnorderedPairs::new();
    for wave in &machine.waves {
        let mut worklist: Vec<(usize, Vec<u16>)> = vec![(0, Vec::new())];
        while let Some((from, mut pending)) = worklist.pop() {
            for node in wave.code.nodes.iter().skip(from) {
                let line_of = |access: u16| {
                    wave.code.accesses.get(usize::from(access)).map_or(0, |details| details.line)
                };
                let add_pairs = |pairs: &mut UnorderedPairs, pending: &[u16], line: u32| {
                    pairs.extend(pending.iter().map(|access| (wave.kernel, line_of(*access), line)));
                };
                match node {
                    WaveStep::End => break,
                    WaveStep::Access(access) if is_shared(&machine, wave, *access) => {
                        // Accesses to one location are always in order.
                        let cells = |access: &u16| wave.cells.get(usize::from(*access));
                        let others: Vec<u16> = pending
                            .iter()
                            .filter(|earlier| cells(earlier) != cells(access))
                            .copied()
                            .collect();
                        add_pairs(&mut pairs, &others, line_of(*access));
                        pending.push(*access);
                    }
                    WaveStep::Wait { accesses, .. } => pending.retain(|access| !accesses.contains(access)),
                    WaveStep::BarrierSignal { line } | WaveStep::BarrierWait { line } => {
                        add_pairs(&mut pairs, &pending, *line)
                    }
                    WaveStep::BranchIfZero { target: other, .. } => {
                        worklist.push((*other as usize, pending.clone()))
                    }
                    WaveStep::Access(_) | WaveStep::Cache { .. } => {}
                }
            }
        }
    }
    Some(pairs)
}

/// Returns true if a wave of another workgroup uses a location.
fn is_used_by_other_workgroup(machine: &Machine, workgroup: usize, cell: u16) -> bool {
    let others = machine.waves.iter().filter(|wave| wave.workgroup != workgroup);
    others.flat_map(|wave| wave.cells.iter().flatten()).any(|used| *used == cell)
}

/// Returns true if another wave can observe an access.
fn is_shared(machine: &Machine, wave: &IsaWave, access: u16) -> bool {
    let cells = wave.cells_of(access);
    cells.iter().any(|cell| !machine.cells.get(usize::from(*cell)).is_none_or(|cell| cell.is_private))
}

/// Traverses the tree of a wave.
struct CodeTraversal<'m> {
    machine: &'m Machine,
    wave: &'m IsaWave,
    line: u32,
    orders: &'m mut OrderedAccesses,
    /// Shared locations that are ordered.
    cells: BTreeSet<u16>,
    /// True if the edited bit belongs to an access, which does not order later accesses.
    is_bit_edit: bool,
}

impl CodeTraversal<'_> {
    fn wave_code(&self) -> &WaveCode {
        &self.wave.code
    }

    /// Returns true for a shared write, false for a shared read, `None` for an access that no other wave can
    /// observe.
    fn shared_write(&self, access: u16) -> Option<bool> {
        let details = self.wave_code().accesses.get(usize::from(access))?;
        is_shared(self.machine, self.wave, access)
            .then_some(!matches!(details.action, AccessAction::Load { .. }))
    }

    fn record_ordered_cells(&mut self, access: u16) {
        if is_shared(self.machine, self.wave, access) {
            self.cells.extend(self.wave.cells_of(access));
        }
    }

    fn traverse_from(&mut self, from: usize, mut is_after_edit: bool, mut has_acquired: bool) {
        let mut at = from;
        let mut earlier_accesses: Vec<u16> = Vec::new();
        while let Some(node) = self.wave_code().nodes.get(at).cloned() {
            match node {
                WaveStep::End => return,
                WaveStep::Access(access) => {
                    let Some(details) = self.wave_code().accesses.get(usize::from(access)) else { return };
                    let (line, unit) = (details.line, details.unit);
                    let is_shared_write = self.shared_write(access);
                    if is_after_edit && !self.is_bit_edit {
                        self.record_ordered_cells(access);
                    }
                    if is_after_edit {
                        self.orders.later_loads |= is_shared_write == Some(false);
                        self.orders.later_stores |= is_shared_write == Some(true);
                    }
                    if line == self.line && unit != MemoryUnit::Lds {
                        self.orders.loads |= is_shared_write == Some(false);
                        self.orders.stores |= is_shared_write == Some(true);
                        self.orders.acquired |= has_acquired;
                        self.record_ordered_cells(access);
                        (is_after_edit, self.is_bit_edit) = (true, true);
                    }
                    earlier_accesses.push(access);
                }
                WaveStep::Wait { line, accesses } => {
                    if line == self.line {
                        for access in &accesses {
                            self.record_ordered_cells(*access);
                            self.orders.loads |= self.shared_write(*access) == Some(false);
                            self.orders.stores |= self.shared_write(*access) == Some(true);
                        }
                        self.orders.acquired |= has_acquired;
                        is_after_edit = true;
                    }
                    has_acquired |= accesses.iter().any(|access| self.shared_write(*access) == Some(false));
                }
                WaveStep::BarrierSignal { line } | WaveStep::BarrierWait { line } => {
                    if line == self.line {
                        for access in &earlier_accesses {
                            self.record_ordered_cells(*access);
                            self.orders.loads |= self.shared_write(*access) == Some(false);
                            self.orders.stores |= self.shared_write(*access) == Some(true);
                        }
                        is_after_edit = true;
                    } else if is_after_edit {
                        self.orders.later_barriers = true;
                    }
                    has_acquired = true;
                }
                WaveStep::Cache { .. } => {}
                WaveStep::BranchIfZero { target: other, .. } => {
                    self.traverse_from(other as usize, is_after_edit, has_acquired)
                }
            }
            at += 1;
        }
    }
}
