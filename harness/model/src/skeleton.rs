//! Candidate executions before reads-from and modification order: events and the relations that the program alone decides.

mod barriers;
mod build;
mod candidates;
mod relations;
mod subgroup;
mod tangles;
mod vocabulary;

use litmus::{LocationId, Placement, Scope, SplitHalf, ThreadId};

use crate::cat::options::Tangling;
use crate::cells::Extent;
use crate::symbolic::{Constraint, Symbolic};

pub(crate) use build::skeletons;
pub use vocabulary::{BASE_RELATIONS, BASE_SETS};
pub(crate) use vocabulary::{Tags, tag_of};

/// Bound on the events of one execution, initial writes included.
pub const MAX_EVENTS: usize = 256;
/// Bound on the threads of a test.
pub const MAX_THREADS: usize = 64;

/// What a model asks of candidate executions; the options comment of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Semantic {
    /// A read-modify-write is one event that reads and writes.
    pub(crate) rmw_fused: bool,
    /// One initial write for each name instead of one for each storage.
    pub(crate) initial_per_name: bool,
    /// Control barriers meet by id in any thread and never block.
    pub(crate) barriers_anywhere: bool,
    /// Final values are what a read of the device domain after everything sees, not the last write in `co`.
    pub(crate) final_device_read: bool,
    /// Values may come out of thin air.
    pub(crate) values_free: bool,
    /// It has an account of hosts, domain operations, access masks, sizes, shader calls and interlocked sections.
    pub(crate) whole_language: bool,
    /// Every byte of a storage whose accesses differ in size is a cell of its own.
    pub(crate) cells_of_bytes: bool,
    /// All of a vector access is one operation.
    pub(crate) vectors_whole: bool,
    /// Whether lanes that a branch has parted come together again behind it.
    pub(crate) tangling: Tangling,
    /// Which subgroup and which workgroup a thread is in counts only for scopes that are as narrow: shown for the shipped texts of
    /// Vulkan's model ([`crate::symmetry`]), and not known of others.
    pub(crate) placed_by_scope: bool,
    /// It is a shipped text of Vulkan's model, of which more is shown: how values go along counters ([`crate::line`]), that reads beside
    /// one another may stand in any order ([`crate::symmetry`]), and that threads which only read behind a loop leave the others as they
    /// are ([`crate::wait`]).
    pub(crate) knows_text: bool,
}

/// Which thread an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The initial state.
    Initial,
    /// A thread of the test.
    Thread(ThreadId),
    /// The unspecified invocation of a thread's subgroup that performs its cooperative access at this instruction. It
    /// shares nothing with the thread but its barriers: any other choice has more order, so that this one stands for all
    /// (VK-CM-01, VK-CM-02).
    Company(ThreadId, u16),
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
    /// The storage accessed, by its name, or a cell of it ([`Piece::cell`]).
    pub(crate) storage: Option<LocationId>,
    /// The name through which it is accessed.
    pub(crate) reference: Option<LocationId>,
    /// The storage, where it is accessed as a block in workgroup memory: all such names of it are one reference in the texts
    /// that have explicit layouts (VK-LOC-06, VK-REF-05).
    block: Option<LocationId>,
    /// What a write stores, over the reads of the execution by event number.
    pub(crate) stored: Option<Symbolic<u16>>,
    /// What the whole operation accesses; the event is that part of it that lies in its cell.
    pub(crate) extent: Option<Extent>,
    /// The first event of the same operation: itself where it has one event.
    operation: u16,
    /// The first event of the same vector access; of what is none, of the same operation.
    vector: u16,
    /// The write half's event of this cell, where this is the read half of a read-modify-write.
    write_half: Option<u16>,
    pub(crate) place: Option<Placement>,
}

/// How the final value of an observable comes about.
#[derive(Clone, Debug)]
pub(crate) enum FinalValue {
    /// An expression over reads by event number.
    Expression(Symbolic<u16>),
    /// The last write to a storage in `co`.
    LastWrite(LocationId),
}

/// An executed half of a split barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Half {
    event: u16,
    half: SplitHalf,
    /// Execution scope.
    scope: Scope,
    /// The instruction of the shader that it is.
    id: String,
    /// How many of this half and scope its thread has executed before.
    round: u16,
}

/// A candidate execution without reads-from and modification order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skeleton {
    pub(crate) events: Vec<Event>,
    /// Whether every thread ran to its end.
    pub(crate) terminated: bool,
    /// Whether the bound of loops ended a thread.
    pub(crate) cut: bool,
    /// What the values read must meet.
    pub(crate) constraints: Vec<Constraint<u16>>,
    /// Final values of [`Test::observables`], in that order.
    pub(crate) finals: Vec<FinalValue>,
    /// Pairs of a read and a write that a `.test` file forces it to read from.
    pub(crate) forced: Vec<(u16, u16)>,
    /// Pairs of control-barrier events that meet.
    pub(crate) meetings: Vec<(u16, u16)>,
    /// The halves of split barriers.
    halves: Vec<Half>,
    pub(crate) system_sync: Vec<(u16, u16)>,
    pub(crate) address: Vec<(u16, u16)>,
    pub(crate) control: Vec<(u16, u16)>,
    shader_calls: Vec<(u16, u16)>,
    sections: Vec<(u16, u16)>,
    uncovered: Vec<(u16, u16)>,
    /// For each thread a number that shader-call-related threads share; empty where there are no calls.
    call_groups: Vec<usize>,
    /// Pairs of threads that are overlapping fragments.
    overlapping: Vec<(ThreadId, ThreadId)>,
}

impl Event {
    /// The thread of the test whose instruction this is.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        match self.owner {
            Owner::Thread(thread) | Owner::Company(thread, _) => Some(thread),
            Owner::Initial | Owner::Final => None,
        }
    }

    /// An event that does nothing yet; `here` is its number.
    fn new(owner: Owner, instruction: Option<u16>, here: u16, place: Option<Placement>) -> Event {
        Event {
            owner,
            instruction,
            tags: Tags::default(),
            storage: None,
            reference: None,
            block: None,
            stored: None,
            extent: None,
            operation: here,
            vector: here,
            write_half: None,
            place,
        }
    }
}
