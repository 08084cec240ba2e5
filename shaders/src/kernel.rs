//! What a compiled kernel is, and what it is made for. How it is run says [`crate::contract`].

use litmus::{Observable, ThreadId};

use crate::carrier::Carrier;
use crate::contract::Parameters;
use crate::variant::{Images, Variant};

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// Invocations of a workgroup: the product of its sizes in x, y and z.
    pub workgroup_size: u32,
    /// Slots of a workgroup: how many instances it plays in one round.
    pub lanes: u32,
    /// What stands behind each storage-buffer binding of set 0, from binding 0: the references that the code accesses in
    /// the order of [`litmus::Test::locations`], the results, the rendezvous where there are several classes or receipts, scratch
    /// memory where there is memory stress, and the claims where one invocation may run twice.
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
    /// Whether each invocation plays every thread, each of another instance; see [`crate::contract`].
    pub parallel: bool,
    /// How the test is told.
    pub variant: Variant,
    /// What its invocations are of, and how they know their workgroup and their place in it.
    pub carrier: Carrier,
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

/// The feature of devices that take `MaximallyReconvergesKHR`.
pub const MAXIMAL_RECONVERGENCE_FEATURE: &str = "shaderMaximalReconvergence";
/// The feature of devices with split barriers.
pub const SPLIT_BARRIER_FEATURE: &str = "shaderSplitBarrier";
/// The extension of modules with them. Its name takes as many words as that of Intel's.
pub(crate) const SPLIT_BARRIER_EXTENSION: &str = "SPV_EXT_split_barrier";

impl Kernel {
    /// Whether it makes memory stress: its push constants then include those of [`crate::StressParameters`].
    pub fn is_stressed(&self) -> bool {
        self.bindings.contains(&Binding::Scratch)
    }

    /// Whether it uses the second location buffer by a binding.
    pub fn uses_apart(&self) -> bool {
        self.bindings.contains(&Binding::Apart)
    }

    /// Workgroups of a group: one of each class, or one alone where each invocation plays every thread.
    pub fn workgroups_of_group(&self) -> u32 {
        if self.parallel { 1 } else { self.roles.classes.len() as u32 }
    }

    /// Names split barriers as `SPV_INTEL_split_barrier` does, whose capability and instructions have the same numbers: for
    /// compilers that know the older extension alone. Gives whether the kernel has any. What it needs of a device is less by the
    /// feature `shaderSplitBarrier` then, so that such a kernel is for compilers and not to be run.
    pub fn name_split_barriers_as_intel(&mut self) -> bool {
        let features = &mut self.requirements.features;
        let before = features.len();
        features.retain(|name| *name != SPLIT_BARRIER_FEATURE);
        if features.len() == before {
            return false;
        }
        let of = |name: &str| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.resize(4 * (name.len() / 4 + 1), 0);
            bytes
                .chunks_exact(4)
                .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
                .collect::<Vec<u32>>()
        };
        let (known, older) = (of(SPLIT_BARRIER_EXTENSION), of("SPV_INTEL_split_barrier"));
        if let Some(at) = self.words.windows(known.len()).position(|words| *words == known)
            && let Some(words) = self.words.get_mut(at..at + older.len())
        {
            words.copy_from_slice(&older);
        }
        true
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
    /// Who has begun to play, in stages whose invocations may be repeated ([`crate::carrier`]).
    Claims,
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
    /// Subgroup size of the device; matters only where roles share a workgroup, or the variant asks for a size.
    pub subgroup_size: u32,
    /// The smallest and the largest that the device has.
    pub subgroup_sizes: (u32, u32),
    /// Slots of a workgroup where every role has a workgroup of its own.
    pub lanes: u32,
    /// The same for tests with loops, where it is less: lavapipe 22.3 has been seen to run such a loop until its budget is used
    /// up, in workgroups of more than one subgroup whose threads wait for one another.
    pub lanes_with_loops: u32,
    /// Invocations of a workgroup at most.
    pub max_workgroup_invocations: u32,
    /// The same in x, y and z, where a variant gives workgroups a [size](crate::variant::WorkgroupShape).
    pub max_workgroup_size: [u32; 3],
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
    /// Whether each invocation plays every thread, one behind the other and each of another instance, where that is possible:
    /// every thread in a workgroup of its own, one kernel of compute shaders, no control barrier, no workgroup memory and no
    /// loop of the test. The parallel testing environment of MC Mutants (ASPLOS 2023).
    pub parallel: bool,
    /// The same as `lanes` for vertices.
    pub vertex_lanes: u32,
    /// Pixels from one cell of fragments to the next, in x and y.
    pub cell: (u32, u32),
    /// How the test is told.
    pub variant: Variant,
}

impl KernelConfig {
    /// Turns of a loop in a round unless something else is said: many times a meeting's jitter, few enough for drivers
    /// that bound all loops of an invocation together.
    pub const LOOP_BOUND: u32 = 128;

    /// Sizes that every device with the Vulkan memory model has, and nothing besides that may be asked for.
    pub const PLAIN: KernelConfig = KernelConfig {
        subgroup_size: 32,
        subgroup_sizes: (32, 32),
        lanes: 32,
        lanes_with_loops: u32::MAX,
        max_workgroup_invocations: 128,
        max_workgroup_size: [128, 128, 64],
        device_scope: true,
        loop_bound: KernelConfig::LOOP_BOUND,
        stressed: false,
        thread_loops: false,
        parallel: false,
        vertex_lanes: 32,
        cell: (16, 16),
        variant: crate::variant::DEFAULT,
    };
}

/// What a kernel needs of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Vulkan names of features (`vulkanMemoryModel`, `vulkanMemoryModelDeviceScope`, …).
    pub features: Vec<&'static str>,
    /// The subgroup size that the kernel was made for, where it depends on one.
    pub subgroup_size: Option<u32>,
    /// The subgroup size that the variant asks for, where the kernel depends on none.
    pub required_size: Option<u32>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// A location is declared `[host]`: the location buffer lies in host-visible memory.
    pub host_visible: bool,
    /// A location is declared `[noncoherent]`: the location buffer lies in host-visible memory without host coherence.
    pub noncoherent: bool,
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
