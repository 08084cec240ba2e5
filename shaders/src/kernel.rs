//! What a compiled kernel is, and the contract between kernel and runner.
//!
//! # Where things run
//! The threads of a test are its **roles**. Roles that share a workgroup (same queue family and workgroup number) form a
//! *workgroup class*; within it, roles that share a subgroup form a *subgroup class*; within that, roles are told apart
//! by lane. With `C` workgroup classes and `G` = [`Parameters::groups`], a dispatch has `C × G` workgroups.
//! Workgroup `w` plays class `(w / p + t) mod C` for group `(w / (p × C)) × p + w mod p`, where `p` =
//! [`Parameters::pairing`] divides `G` and `t` = [`Parameters::turn`]: 1 alternates the classes, `G` gives each class one contiguous range.
//! The `L` = [`Kernel::lanes`] slots of a workgroup (each slot hosts every role of the workgroup's class once) are
//! permuted: slot `l` of group `g` and class `c` plays instance
//! `((g × group_multiplier + c × group_offset) mod G) × L + (l × lane_multiplier + c × lane_offset) mod L`.
//! Multipliers are co-prime to `G` and to `L`; no product of the formulas here may exceed 32 bits. Where several kernels
//! run at the same time, `c` in this formula counts the classes of all of them: it begins at [`Kernel::first_class`].
//!
//! Where every role has a workgroup of its own, slot `l` is the invocation with local index `l`. Otherwise the subgroup
//! with id `s` hosts subgroup class `(s + t) mod S` of the workgroup's class, where `t` = [`Parameters::turn`] again and `S` is
//! the number of subgroups of a workgroup (drivers that run one subgroup after the other then show every order), and its lane `j` is slot `j mod L` of that
//! subgroup's `j / L`-th role, both in the order of the threads. `L` is then the subgroup size over the number of roles
//! in the fullest subgroup (of any kernel of the [program](crate::Program)), and a workgroup has as many subgroups as the
//! class with the most. Lanes without a role idle, but meet in control barriers.
//!
//! # Where things lie
//! Every round `k` of `K` = [`Parameters::rounds`] has instances of its own: instance index `n = k × G × L + i`.
//! Storage number `s` of instance `n` is unit `n × stride + s × spacing` of the location buffer, with
//! [`Parameters::stride`] at least `storages × spacing` units; a unit has [`Kernel::storage_words`] words. Aliases of a
//! storage are bindings of their own over the same buffer, and all of these bindings are decorated `Aliased`. Result
//! slot `r` of instance `n` is word `(s + r) × K × G × L + n` of the result buffer, where `s` = [`Kernel::first_slot`].
//! The caller fills the result buffer with [`Parameters::poison`] before each dispatch and the location buffer with the
//! initial values.
//!
//! Storages in *images* are texels with the number of the first word of their unit: word `w` is texel `(w mod 4096,
//! w / 4096)` of a two-dimensional image and texel `w` of a one-dimensional image or a texel buffer. Images hold the initial values like the location
//! buffer does; a texel buffer shows the location buffer itself. Where a kernel has [`Kernel::addresses`], the address
//! of the location buffer stands behind the parameters among the push constants, at byte [`Kernel::push_constant_bytes`].
//!
//! Where a variant puts some storages *apart*, a second buffer and other images hold those, each at the same place as it would
//! have in the first ([`Kernel::apart`]); both are filled with the initial values of all.
//!
//! Storages in *workgroup memory* are made and read by the kernel: in every round one invocation of each slot writes the
//! initial values, the workgroup meets in a control barrier, the threads run, the workgroup meets again, and the same
//! invocation writes final values that belong to the outcome to result slots.
//!
//! # Loops
//! A loop of a test makes [`KernelConfig::loop_bound`] turns at most in a round. A thread that has not left its loop by
//! then ends, and its [`ResultSlot::Done`] holds the complement of [`Parameters::done`]: the instance is unresolved.
//!
//! # Meeting
//! With [`Parameters::spin`] > 0, the workgroups of one group meet before round 0 and before every
//! [`Parameters::interval`]-th round after it: one invocation of each adds 1 to word `g × 16` of the rendezvous buffer
//! (relaxed, device or queue-family scope) and waits until it reads at least `a × m` at the `m`-th meeting, counted from
//! 1, where `a` = [`Parameters::party`] is `C` or, where not so many workgroups run at once, less. The caller zeroes that
//! buffer before each dispatch. Loads that find someone missing are counted over the whole dispatch: whoever has made `spin` of them does not wait again. So the long wait until all have been scheduled, and the
//! short ones between rounds, have one bound. Who finds all there at the first look came last; the others learn of it
//! only when the news has crossed from one processor to the other, so it makes [`Parameters::hold`] more loads before it
//! goes on. Every invocation waits for itself: no barrier is needed, lanes in lockstep share one wait, and in a workgroup
//! of several subgroups each subgroup begins its rounds no earlier than the other workgroups have arrived. `C` counts
//! the classes of all kernels that run at the same time. Where there is one class, there is nobody to wait for and no
//! rendezvous buffer.
//!
//! With `M` meetings an invocation spends at most `K` loop iterations on rounds and `(2 + hold) × M + spin` on waiting;
//! some drivers bound the sum silently. Where each thread has a loop of its own ([`Kernel::thread_loops`]), each meeting costs
//! an iteration more for each thread of the kernel, and one besides.
//!
//! # Memory stress
//! Kernels that are made with [`KernelConfig::stressed`] have a [`Binding::Scratch`], more push constants and more
//! workgroups: the contract is in [`crate::stress`].

use litmus::{Observable, ThreadId};

use crate::variant::{Images, Variant};

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// Workgroup size in x; y and z are 1.
    pub workgroup_size: u32,
    /// Slots of a workgroup: how many instances it plays in one round.
    pub lanes: u32,
    /// What stands behind each storage-buffer binding of set 0, from binding 0: the references that the code accesses in
    /// the order of [`litmus::Test::locations`], the results, the rendezvous where there are several classes, and scratch
    /// memory where there is memory stress.
    pub bindings: Vec<Binding>,
    /// What stands behind the bindings of set 0 after [`Kernel::bindings`]: storage images or storage texel buffers.
    pub images: Vec<ImageBinding>,
    /// The address of the location buffer follows the parameters among the push constants, and behind it that of the second
    /// one where there is any.
    pub addresses: bool,
    /// Storages that lie in the second location buffer ([`Binding::Apart`]), or in images of their own beside it; empty unless
    /// [`Variant::apart`] asks for it.
    pub apart: Vec<u32>,
    /// Threads with a loop of rounds of their own; 0 where all share one loop.
    pub thread_loops: u32,
    /// How the test is told.
    pub variant: Variant,
    /// How threads are spread.
    pub roles: Roles,
    /// Number of its first workgroup class among those of the kernels that run at the same time; 0 where it runs alone.
    pub first_class: u32,
    /// Units of location memory for one instance without padding: the number of distinct storages, which are numbered in
    /// the order in which [`litmus::Test::locations`] first names them, accessed or not.
    pub storages: u32,
    /// Words of a unit of location memory: 1, or 2 or 4 where a storage has more than 32 or 64 bits.
    pub storage_words: u32,
    /// The initial contents of each storage as bits, the first component of a vector lowest: those of floating-point numbers where
    /// the location holds such.
    pub initial: Vec<u128>,
    /// What each result word of an instance holds. Every role writes at least one slot.
    pub results: Vec<ResultSlot>,
    /// Number of its first result slot among those of its [program](crate::Program); 0 where it is the whole of it.
    pub first_slot: u32,
    /// Storages whose final value belongs to the outcome, with their number: read by the host from the location buffer.
    pub finals: Vec<(Observable, u32)>,
    /// Storages that lie in an image of its own memory: their final values are read from it.
    pub in_image: Vec<u32>,
    /// Turns of all loops of the test at most in a round: threads of one subgroup may take theirs one after another.
    pub loop_turns: u32,
    /// What the kernel needs of a device.
    pub requirements: Requirements,
}

impl Kernel {
    /// Whether it makes memory stress: its push constants then include those of [`crate::StressParameters`].
    pub fn is_stressed(&self) -> bool {
        self.bindings.contains(&Binding::Scratch)
    }

    /// Bytes of its push constants, without an address.
    pub fn push_constant_bytes(&self) -> u32 {
        Parameters::BYTES + if self.is_stressed() { crate::StressParameters::BYTES } else { 0 }
    }
}

/// What a binding refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The location buffer (one binding for each reference of the test; several may show the same buffer).
    Locations,
    /// The second location buffer, of the same size and with units at the same places.
    Apart,
    /// The result buffer.
    Results,
    /// The rendezvous buffer.
    Rendezvous,
    /// Scratch memory, in kernels with memory stress: a buffer of its own ([`crate::stress`]).
    Scratch,
}

/// A descriptor of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageBinding {
    /// What kind of image it is.
    pub shape: Images,
    /// The texels are floating-point numbers (format `R32_SFLOAT`) and no unsigned integers (`R32_UINT`).
    pub float: bool,
    /// It holds storages that lie apart.
    pub apart: bool,
}

/// How the threads of a test are spread over workgroup classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// For each workgroup class its threads.
    pub classes: Vec<Vec<ThreadId>>,
}

/// What a result word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSlot {
    /// The final value of a register, or of a location in workgroup memory; the low word of one with 64 bits.
    Register(Observable),
    /// The high word of the value of 64 bits whose low word is in another slot.
    High(Observable),
    /// [`Parameters::done`] once the thread has ended: for threads that assign no register, and for threads with loops.
    /// Its complement where a loop was given up.
    Done(ThreadId),
}

impl ResultSlot {
    /// The thread that writes the word.
    pub fn thread(&self) -> Option<ThreadId> {
        match self {
            ResultSlot::Register(Observable::Register(thread, _))
            | ResultSlot::High(Observable::Register(thread, _))
            | ResultSlot::Done(thread) => Some(*thread),
            ResultSlot::Register(Observable::Location(..)) | ResultSlot::High(Observable::Location(..)) => {
                None
            }
        }
    }
}

/// How to compile: what a device and a placement decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// Subgroup size of the device; matters only where roles share a workgroup.
    pub subgroup_size: u32,
    /// Slots of a workgroup where every role has a workgroup of its own.
    pub lanes: u32,
    /// The same for tests with loops, where it is less: lavapipe 22.3 has been seen to run such a loop until its budget is used
    /// up, in workgroups of more than one subgroup whose threads wait for one another.
    pub lanes_with_loops: u32,
    /// Invocations of a workgroup at most.
    pub max_workgroup_invocations: u32,
    /// Declare `vulkanMemoryModelDeviceScope`; without it the rendezvous uses queue-family scope.
    pub device_scope: bool,
    /// Turns of a loop of the test at most in a round.
    pub loop_bound: u32,
    /// Whether kernels can make memory stress ([`crate::stress`]).
    pub stressed: bool,
    /// Whether each thread has a loop of its own for the rounds from one meeting to the next, where that is possible:
    /// every thread in a workgroup of its own, no control barrier, no workgroup memory, no loop of the test and no memory
    /// stress. The same instances are played in the same order.
    pub thread_loops: bool,
    /// How the test is told.
    pub variant: Variant,
}

impl KernelConfig {
    /// Turns of a loop in a round unless something else is said: many times a meeting's jitter, few enough for drivers
    /// that bound all loops of an invocation together.
    pub const LOOP_BOUND: u32 = 128;
}

/// What a kernel needs of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Vulkan names of features (`vulkanMemoryModel`, `vulkanMemoryModelDeviceScope`, …).
    pub features: Vec<&'static str>,
    /// The subgroup size that the kernel was made for, where it depends on one.
    pub subgroup_size: Option<u32>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// A location is declared `[host]`: the location buffer lies in host-visible memory.
    pub host_visible: bool,
    /// A location is declared `[noncoherent]`: the location buffer lies in host-visible memory without host coherence.
    pub noncoherent: bool,
}

/// The push constants of a kernel, in this order, each a 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// `G`: groups, that is, workgroups of each class.
    pub groups: u32,
    /// `K`: rounds.
    pub rounds: u32,
    /// Loads that an invocation spends at most on waiting in vain, over all rounds; 0: no rendezvous.
    pub spin: u32,
    /// `p`: workgroups of one class in a row; divides `groups`.
    pub pairing: u32,
    /// Co-prime to `groups`.
    pub group_multiplier: u32,
    /// Added per class.
    pub group_offset: u32,
    /// Co-prime to the kernel's lanes.
    pub lane_multiplier: u32,
    /// Added per class.
    pub lane_offset: u32,
    /// Units from one instance's locations to the next one's; a unit has [`Kernel::storage_words`] words.
    pub stride: u32,
    /// Units from one storage of an instance to the next.
    pub spacing: u32,
    /// What the result memory is filled with.
    pub poison: u32,
    /// What a [`ResultSlot::Done`] holds.
    pub done: u32,
    /// Rounds from one meeting to the next; at least 1.
    pub interval: u32,
    /// Loads that whoever comes last to a meeting makes before it goes on.
    pub hold: u32,
    /// `t`: which class the first workgroups play, and which subgroup class the first subgroup of a workgroup hosts.
    pub turn: u32,
    /// Arrivals that each meeting waits for: `C`, or fewer where not so many workgroups run at once.
    pub party: u32,
}

impl Parameters {
    /// Size of the push constants in bytes.
    pub const BYTES: u32 = 16 * 4;

    /// The push constants as the kernel reads them (little-endian words, in the order of the fields).
    pub fn to_bytes(self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The words in the order of the fields.
    pub fn words(self) -> [u32; Parameters::BYTES as usize / 4] {
        [
            self.groups,
            self.rounds,
            self.spin,
            self.pairing,
            self.group_multiplier,
            self.group_offset,
            self.lane_multiplier,
            self.lane_offset,
            self.stride,
            self.spacing,
            self.poison,
            self.done,
            self.interval,
            self.hold,
            self.turn,
            self.party,
        ]
    }

    /// One instance in each slot of one group, one round, nobody waits for anybody: as little around the threads of a
    /// test as a kernel can have.
    pub const SINGLE: Parameters = Parameters {
        groups: 1,
        rounds: 1,
        spin: 0,
        pairing: 1,
        group_multiplier: 1,
        group_offset: 0,
        lane_multiplier: 1,
        lane_offset: 0,
        stride: 1024,
        spacing: 64,
        poison: 0,
        done: 1,
        interval: 1,
        hold: 0,
        turn: 0,
        party: 1,
    };
}

/// Why a test has no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A rule of how tests meet a device; the test is skipped by this name, `check` still answers.
    #[error("{rule}")]
    NotPlaceable {
        /// The rule by name, such as `sc1 across workgroups`.
        rule: String,
    },
    /// The device is too small for the test.
    #[error("needs {needed} invocations in a workgroup, the device has {available}")]
    WorkgroupTooLarge {
        /// Needed.
        needed: u32,
        /// Available.
        available: u32,
    },
}
