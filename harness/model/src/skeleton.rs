//! Event structures: candidate executions before the choice of reads-from and modification order.
//!
//! An event structure holds the events of one path per thread, and the base relations that these paths
//! determine. herd builds the same structures before it enumerates `rf` and `co`.

mod barriers;
mod build;
mod candidates;
mod relations;
mod restrict;
mod subgroup;
mod tangles;
mod vocabulary;

use litmus::{LocationId, Placement, Scope, SplitHalf, ThreadId};

use crate::cat::options::TangleRule;
use crate::cells::{AccessPiece, Extent};
use crate::symbolic::{Constraint, SymbolicValue};

pub(crate) use barriers::MAX_QUORUM_BARRIERS;
pub(crate) use build::build_skeletons;
pub use vocabulary::{BASE_RELATIONS, BASE_SETS};
pub(crate) use vocabulary::{Tags, tag_of};

/// Bound on the events of one execution, initial writes included.
pub const MAX_EVENTS: usize = 256;
/// Bound on the threads of a test.
pub const MAX_THREADS: usize = 64;

/// Requirements of a model on candidate executions, from the options comment of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionSemantics {
    /// A read-modify-write is one event that reads and writes.
    pub(crate) has_fused_rmw: bool,
    /// One initial write for each name instead of one for each storage.
    pub(crate) has_initial_write_per_name: bool,
    /// Control barriers synchronize by id across all threads and never block.
    pub(crate) has_global_barriers: bool,
    /// Final values are read by the device domain after all events, instead of the last write in `co`.
    pub(crate) has_final_device_read: bool,
    /// Values may come out of thin air.
    pub(crate) allows_thin_air: bool,
    /// The model defines hosts, domain operations, access masks, sizes, shader calls and interlocked
    /// sections.
    pub(crate) has_full_language: bool,
    /// If accesses to a storage differ in size, each of its bytes is a separate cell.
    pub(crate) has_byte_cells: bool,
    /// A whole vector access is one operation.
    pub(crate) has_whole_vectors: bool,
    /// The model defines sequentially consistent operations.
    pub(crate) has_sequential_orders: bool,
    /// True for the model of WGSL, which refuses features that WGSL does not have.
    pub(crate) is_wgsl: bool,
    /// Reconvergence of lanes after a divergent branch.
    pub(crate) tangle_rule: TangleRule,
    /// The subgroup and workgroup of a thread matter only to equally narrow scopes. This is proved for the
    /// shipped Vulkan models ([`crate::symmetry`]) and unknown for others.
    pub has_scope_symmetry: bool,
    /// The model is a shipped Vulkan model, for which further reductions are proved: values along counters
    /// ([`crate::rmw_chain`]) and reordering of adjacent reads ([`crate::symmetry`]).
    pub is_shipped_vulkan: bool,
}

/// Owner of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The initial state.
    Initial,
    /// A thread of the test.
    Thread(ThreadId),
    /// The unspecified invocation of a thread's subgroup that performs the cooperative access at this
    /// instruction.
    ///
    /// It shares only barriers with the thread. Any other choice has more order, so this one is
    /// representative (VK-CM-01, VK-CM-02).
    CooperativeInvocation(ThreadId, u16),
    /// The reader of final values.
    Final,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) owner: Owner,
    /// Index into the thread's instructions.
    pub(crate) instruction: Option<u16>,
    pub(crate) tags: Tags,
    /// Index into the steps of the thread's path.
    pub(crate) step: Option<u16>,
    /// The storage accessed, by its name, or a cell of it (`AccessPiece::cell`).
    pub(crate) storage: Option<LocationId>,
    /// The name through which it is accessed.
    pub(crate) reference: Option<LocationId>,
    /// The storage, if it is accessed as a block in workgroup memory. All such names share one reference in
    /// texts with explicit layouts (VK-LOC-06, VK-REF-05).
    block: Option<LocationId>,
    /// Value stored by a write, as an expression over the reads by event number.
    pub(crate) stored_value: Option<SymbolicValue<u16>>,
    /// Extent of the whole operation; the event is the part of it in its cell.
    pub(crate) extent: Option<Extent>,
    /// First event of the same operation; the event itself if it is the only one.
    first_of_operation: u16,
    /// The first event of the same vector access; for other accesses, of the same operation.
    first_of_vector: u16,
    /// The part of its access in this cell.
    pub(crate) piece: Option<AccessPiece>,
    /// The write half in this cell, if this event is the read half of an RMW.
    write_half: Option<u16>,
    pub(crate) place: Option<Placement>,
}

/// Source of an observable's final value.
#[derive(Clone, Debug)]
pub(crate) enum FinalValueSource {
    /// An expression over reads by event number.
    Expression(SymbolicValue<u16>),
    /// The last write to a storage in `co`.
    LastWrite(LocationId),
}

/// An executed half of a split barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExecutedBarrierHalf {
    event: u16,
    half: SplitHalf,
    /// Execution scope.
    scope: Scope,
    /// The id of its barrier instruction in the shader.
    id: String,
    /// Number of earlier executions of this half and scope by the thread.
    round: u16,
}

/// A candidate execution without reads-from and modification order (pre-execution).
#[derive(Clone, Debug, Default)]
pub(crate) struct Skeleton {
    pub(crate) events: Vec<Event>,
    /// True if every thread ran to its end.
    pub(crate) terminated: bool,
    /// True if the bound of loops ended a thread.
    pub(crate) is_truncated: bool,
    /// Constraints on the values read.
    pub(crate) constraints: Vec<Constraint<u16>>,
    /// Final values of [`litmus::Test::observables`], in that order.
    pub(crate) final_values: Vec<FinalValueSource>,
    /// Reads-from edges that a `.test` file forces, as pairs of read and write.
    pub(crate) forced_reads_from: Vec<(u16, u16)>,
    /// Pairs of control-barrier events that synchronize.
    pub(crate) barrier_sync: Vec<(u16, u16)>,
    /// The halves of split barriers.
    barrier_halves: Vec<ExecutedBarrierHalf>,
    pub(crate) system_sync: Vec<(u16, u16)>,
    pub(crate) address_dependencies: Vec<(u16, u16)>,
    pub(crate) control_dependencies: Vec<(u16, u16)>,
    pub(crate) data_dependencies: Vec<(u16, u16)>,
    shader_call_order: Vec<(u16, u16)>,
    subgroup_order: Vec<(u16, u16)>,
    interlock_order: Vec<(u16, u16)>,
    uncovered_pairs: Vec<(u16, u16)>,
    /// Per thread, the group of shader-call-related threads; empty without shader calls.
    shader_call_groups: Vec<usize>,
    /// Pairs of threads that are overlapping fragments.
    overlapping_fragments: Vec<(ThreadId, ThreadId)>,
}

impl Event {
    /// Returns the thread whose instruction this event belongs to.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        match self.owner {
            Owner::Thread(thread) | Owner::CooperativeInvocation(thread, _) => Some(thread),
            Owner::Initial | Owner::Final => None,
        }
    }

    /// Returns the write of a read-modify-write, if this event is the read.
    pub(crate) fn write_half(&self) -> Option<usize> {
        self.write_half.map(usize::from)
    }

    /// Creates an event without effect; `number` is its number.
    fn new(owner: Owner, instruction: Option<u16>, number: u16, place: Option<Placement>) -> Event {
        Event {
            owner,
            instruction,
            step: None,
            tags: Tags::default(),
            storage: None,
            reference: None,
            block: None,
            stored_value: None,
            extent: None,
            piece: None,
            first_of_operation: number,
            first_of_vector: number,
            write_half: None,
            place,
        }
    }
}
