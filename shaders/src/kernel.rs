//! Compiled kernels and their configuration. [`crate::contract`] defines how they run.

use litmus::{Observable, ThreadId};
use vocabulary::Feature;

use crate::carrier::Carrier;
use crate::contract::Parameters;
use crate::variant::{ImageForm, Variant};

#[derive(Clone, Debug)]
pub struct CompiledKernel {
    pub words: Vec<u32>,
    /// A hash of its module, which it contains as a constant; 0 for kernels of one fixed dispatch.
    pub identity: u32,
    /// The bindings whose number of elements is part of its receipt, and the bytes of their elements.
    pub measured_bindings: Vec<(u32, u32)>,
    /// The salts that are part of its receipt, in the order in which it reads them.
    pub salted_paths: Vec<SaltedPath>,
    /// Invocations of a workgroup: the product of its sizes in x, y and z.
    pub workgroup_size: u32,
    /// Slots of a workgroup: the number of instances that it runs in one round.
    pub lanes: u32,
    /// The buffer of each storage-buffer binding of set 0, from binding 0: the accessed references in the
    /// order of [`litmus::Test::locations`], the results, the rendezvous buffer if there are several classes
    /// or receipts, scratch memory with memory stress, and the claims if an invocation may run twice.
    pub bindings: Vec<Binding>,
    /// The bindings of set 0 after [`CompiledKernel::bindings`]: storage images or storage texel buffers.
    pub images: Vec<ImageBinding>,
    /// The address of the location buffer follows the parameters in the push constants, and the address of
    /// the second location buffer follows that one.
    pub uses_addresses: bool,
    /// Storages in a second buffer ([`Binding::SeparateLocations`]) or in separate images; empty unless
    /// [`Variant::separate_storages`] requires it.
    pub separate_storages: Vec<u32>,
    /// Threads with their own loop of rounds; 0 if all share one loop.
    pub thread_loops: u32,
    /// Each invocation runs every thread, each for a different instance; see [`crate::contract`].
    pub is_parallel: bool,
    pub variant: Variant,
    /// The stage of its invocations, and how they determine workgroup and index.
    pub carrier: Carrier,
    /// The assignment of threads to workgroup classes.
    pub roles: Roles,
    /// Index of its first workgroup class among those of all concurrent kernels; 0 for a single kernel.
    pub first_class: u32,
    /// Units of location memory of one instance without padding: the number of distinct storages, numbered in
    /// the order of their first names in [`litmus::Test::locations`], accessed or not.
    pub storages: u32,
    /// Words of a unit of location memory: 1, or 2 or 4 if a storage has more than 32 or 64 bits.
    pub storage_words: u32,
    /// The initial value of each storage as bits, the first component of a vector lowest; in floating-point
    /// representation for floating-point locations.
    pub initial_values: Vec<u128>,
    /// The content of each result word of an instance. Every role writes at least one slot.
    pub results: Vec<ResultSlot>,
    /// Index of its first result slot in its [program](crate::Program); 0 if it is the only kernel.
    pub first_slot: u32,
    /// Storages with a final value in the outcome, with their index: the host reads them from the location
    /// buffer.
    pub final_values: Vec<(Observable, u32)>,
    /// Storages in an image with its own memory, from which their final values are read.
    pub image_storages: Vec<u32>,
    /// The maximum iterations of all loops of the test in a round: threads of one subgroup may loop one after
    /// another.
    pub max_loop_iterations: u32,
    pub requirements: Requirements,
}

/// The extension of modules with split barriers. Its name has as many words as that of the Intel extension.
pub(crate) const SPLIT_BARRIER_EXTENSION: &str = "SPV_EXT_split_barrier";

impl CompiledKernel {
    /// Returns true if it generates memory stress; its push constants then include
    /// [`crate::StressParameters`].
    pub fn is_stressed(&self) -> bool {
        self.bindings.contains(&Binding::Scratch)
    }

    /// Returns true if it binds the second location buffer.
    pub fn uses_separate_buffer(&self) -> bool {
        self.bindings.contains(&Binding::SeparateLocations)
    }

    /// Returns the workgroups of a group: one of each class, or one if each invocation runs every thread.
    pub fn workgroups_per_group(&self) -> u32 {
        if self.is_parallel { 1 } else { self.roles.classes.len() as u32 }
    }

    /// Renames split barriers to `SPV_INTEL_split_barrier`, whose capability and instructions have the same
    /// numbers, for compilers that support only this extension. Returns true if the kernel has any.
    ///
    /// This removes the feature `shaderSplitBarrier` from the requirements, so such a kernel must only be
    /// compiled, not run.
    pub fn name_split_barriers_as_intel(&mut self) -> bool {
        let features = &mut self.requirements.features;
        let before = features.len();
        features.retain(|feature| *feature != Feature::ShaderSplitBarrier);
        if features.len() == before {
            return false;
        }
        let extension_words = |name: &str| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.resize(4 * (name.len() / 4 + 1), 0);
            bytes
                .chunks_exact(4)
                .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
                .collect::<Vec<u32>>()
        };
        let (known, older) =
            (extension_words(SPLIT_BARRIER_EXTENSION), extension_words("SPV_INTEL_split_barrier"));
        if let Some(at) = self.words.windows(known.len()).position(|words| *words == known)
            && let Some(words) = self.words.get_mut(at..at + older.len())
        {
            words.copy_from_slice(&older);
        }
        true
    }

    /// Returns the bytes of its push constants, without an address.
    pub fn push_constant_bytes(&self) -> u32 {
        Parameters::BYTES + if self.is_stressed() { crate::StressParameters::BYTES } else { 0 }
    }
}

/// The buffer of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The location buffer, once for each reference of the test.
    Locations,
    /// The second location buffer, with the same size and layout.
    SeparateLocations,
    /// The result buffer.
    Results,
    /// The rendezvous buffer.
    Rendezvous,
    /// Scratch memory of memory stress, a separate buffer ([`crate::stress`]).
    Scratch,
    /// The claimed slots, in stages whose invocations may be repeated ([`crate::carrier`]).
    Claims,
}

/// A word of location memory that identifies it ([`crate::contract`]), as an access of a test reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaltedPath {
    pub memory: SaltedMemory,
    /// Bytes from the start of the unit.
    pub offset: u32,
    /// Bytes of the access.
    pub bytes: u32,
}

impl SaltedPath {
    /// Returns the value that the kernel reads if every word of the unit is `salt`.
    pub fn expected_value(&self, salt: u32) -> u32 {
        let mask = match self.bytes {
            1 => 0xff,
            2 => 0xffff,
            _ => u32::MAX,
        };
        salt >> (8 * (self.offset % 4)) & mask
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaltedMemory {
    /// The location buffer.
    Locations,
    /// The second location buffer.
    SeparateLocations,
    /// An image, or one of the buffers as a texel buffer.
    Image(ImageBinding),
}

/// A descriptor of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageBinding {
    pub shape: ImageForm,
    /// The texels are floating-point numbers (`R32_SFLOAT`) instead of unsigned integers (`R32_UINT`).
    pub is_float: bool,
    /// It contains separate storages.
    pub is_separate: bool,
}

/// The assignment of threads to workgroup classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// The threads of each workgroup class.
    pub classes: Vec<Vec<ThreadId>>,
}

/// The content of a result word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSlot {
    /// The final value of a register, or of a location in workgroup memory; the low word of a 64-bit value.
    Register(Observable),
    /// The high word of a 64-bit value whose low word is in another slot.
    High(Observable),
    /// [`Parameters::done`] once the thread has ended, for threads without registers and threads with loops.
    /// Its complement if a loop reached its bound.
    Done(ThreadId),
}

impl ResultSlot {
    /// Returns the thread that writes the word.
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

/// The compile options, determined by device and stress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// Subgroup size of the device; relevant only if roles share a workgroup, or the variant requires a size.
    pub subgroup_size: u32,
    /// The smallest and the largest size of the device.
    pub subgroup_sizes: (u32, u32),
    /// Slots of a workgroup if every role has its own workgroup.
    pub lanes: u32,
    /// The maximum for tests with loops. lavapipe 22.3 runs such a loop until its budget is used up, in
    /// workgroups of several subgroups whose threads wait for each other.
    pub max_lanes_with_loops: u32,
    /// The maximum invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// The maximum in x, y and z, for variants that set the workgroup [size](crate::variant::WorkgroupShape).
    pub max_workgroup_size: [u32; 3],
    /// Declare `vulkanMemoryModelDeviceScope`; without it the rendezvous uses queue-family scope.
    pub device_scope: bool,
    /// The maximum iterations of a test's loop in a round.
    pub loop_bound: u32,
    /// Kernels can generate memory stress ([`crate::stress`]).
    pub has_stress: bool,
    /// Each thread has its own loop for the rounds between two rendezvous, if possible: every thread in its
    /// own workgroup, no control barrier, no workgroup memory, no loop of the test and no memory stress. The
    /// instances and their order do not change.
    pub thread_loops: bool,
    /// Each invocation runs every thread in sequence, each for a different instance, if possible: every
    /// thread in its own workgroup, one compute kernel, no control barrier, no workgroup memory and no loop
    /// of the test. This is the parallel testing environment of MC Mutants (ASPLOS 2023).
    pub parallel: bool,
    /// As `lanes`, for vertices.
    pub vertex_lanes: u32,
    /// Pixels between two cells of fragments, in x and y.
    pub fragment_cell: (u32, u32),
    pub variant: Variant,
}

impl KernelConfig {
    /// The default bound of loops in a round: many times the jitter of a rendezvous, but low enough for
    /// drivers that limit all loops of an invocation together.
    pub const LOOP_BOUND: u32 = 128;

    /// Sizes that every device with the Vulkan memory model supports, and no optional features.
    pub const MINIMAL: KernelConfig = KernelConfig {
        subgroup_size: 32,
        subgroup_sizes: (32, 32),
        lanes: 32,
        max_lanes_with_loops: u32::MAX,
        max_workgroup_invocations: 128,
        max_workgroup_size: [128, 128, 64],
        device_scope: true,
        loop_bound: KernelConfig::LOOP_BOUND,
        has_stress: false,
        thread_loops: false,
        parallel: false,
        vertex_lanes: 32,
        fragment_cell: (16, 16),
        variant: crate::variant::DEFAULT,
    };
}

/// The requirements of a kernel on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    pub features: Vec<Feature>,
    /// The subgroup size that the kernel was compiled for, if it depends on one.
    pub subgroup_size: Option<u32>,
    /// The subgroup size of the variant, if the kernel does not depend on one.
    pub required_size: Option<u32>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// A location is declared `[host]`: the location buffer must be in host-visible memory.
    pub host_visible: bool,
    /// A location is declared `[noncoherent]`: the location buffer must be in host-visible memory without
    /// host coherence.
    pub noncoherent: bool,
}

/// Why a test has no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A placement rule; the test is skipped with its name, while `check` still answers.
    #[error("{rule}")]
    NotPlaceable {
        /// The name of the rule, such as `sc1 across workgroups`.
        rule: String,
    },
    #[error("needs {needed} invocations in a workgroup, the device has {available}")]
    WorkgroupTooLarge { needed: u32, available: u32 },
}
