//! Questions for the explorer, and its verdicts.

use std::collections::BTreeSet;

use vendor::DescriptorLayout;

use crate::facts::Profile;
use crate::family::AmdFamily;
use crate::text::MachineProgram;

/// Kernels with their dispatches and memory, and the outcomes that a model allows.
#[derive(Clone, Debug)]
pub struct MachineQuestion {
    pub family: AmdFamily,
    pub kernels: Vec<MachineKernel>,
    /// The workgroups, each with one instance.
    pub workgroups: Vec<Workgroup>,
    /// The barrier after each dispatch except the last.
    pub barriers: Vec<DispatchBarrier>,
    /// The initial memory; 0 elsewhere.
    pub initial_memory: Vec<InitialMemory>,
    /// The parts of an outcome.
    pub observed: Vec<ObservedWord>,
    /// The allowed outcomes, with values in the order of `observed`. The explorer searches for all others.
    pub allowed_outcomes: BTreeSet<Vec<u64>>,
}

/// A kernel: its machine text and its resources.
#[derive(Clone, Debug)]
pub struct MachineKernel {
    pub program: MachineProgram,
    /// The descriptors of set 0.
    pub resources: Vec<Resource>,
    /// The space whose start address is in the push constants, if the kernel has one.
    pub address_space: Option<MemorySpace>,
}

/// Identity of a memory region. Buffers, images and addresses with the same memory have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemorySpace(pub u16);

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its offset in the descriptor set, in bytes.
    pub offset: u32,
    pub target: DescriptorTarget,
}

/// The memory of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorTarget {
    /// A storage buffer from the start of a space.
    Buffer(MemorySpace),
    /// A texel buffer: texel `i` is the word at byte `4 × i`.
    Texels(MemorySpace),
    /// An image of words: texel `(x, y)` is the word at byte `4 × (y × row + x)`.
    Image {
        space: MemorySpace,
        /// Texels of a row; 0 for a one-dimensional image.
        row: u32,
    },
}

impl Resource {
    /// Returns descriptors in a driver's set layout, in binding order.
    pub fn lay_out(targets: &[DescriptorTarget], sizes: DescriptorLayout) -> Vec<Resource> {
        let mut next = 0_u32;
        targets
            .iter()
            .map(|target| {
                let size = match target {
                    DescriptorTarget::Image { .. } => sizes.image_bytes,
                    DescriptorTarget::Buffer(_) | DescriptorTarget::Texels(_) => sizes.buffer_bytes,
                };
                let offset = next.next_multiple_of(size);
                next = offset.saturating_add(size);
                Resource { offset, target: *target }
            })
            .collect()
    }
}

/// A pipeline barrier between two dispatches: an execution dependency with the stated visibility.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchBarrier {
    /// The accesses to which memory is made visible, by the words of access masks: `shader_read`.
    pub visible: Vec<String>,
}

/// A workgroup that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workgroup {
    /// Index into [`MachineQuestion::kernels`].
    pub kernel: usize,
    /// Index of its dispatch in the sequence, from 0.
    pub dispatch: usize,
    /// Its index in x within its dispatch.
    pub id: u32,
    /// The number of lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// The participating lanes of each wave; the others belong to other instances.
    pub waves: Vec<Vec<u8>>,
}

/// The initial value of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialMemory {
    pub word: MemoryWord,
    pub value: u64,
}

/// A range of memory within 8 aligned bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryWord {
    pub space: MemorySpace,
    /// The byte offset in it.
    pub offset: u32,
    /// 1, 2, 4 or 8.
    pub bytes: u8,
}

/// A part of an outcome: the final value of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedWord {
    pub word: MemoryWord,
    /// The value that it must have for the outcome to count; a thread that stopped a loop at its bound leaves another
    /// value.
    pub required: Option<u64>,
}

/// The verdict of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineVerdict {
    /// No placement and no interleaving reaches a forbidden outcome.
    Unreachable(Exploration),
    /// Some execution reaches a forbidden outcome.
    Reachable(Box<Trace>),
    /// A register is used before the load that writes it must be complete.
    Hazard(Hazard),
    /// The text contains something that the machine does not support.
    Unsupported(Unsupported),
}

impl MachineVerdict {
    /// Returns the word in reports.
    pub fn word(&self) -> &'static str {
        match self {
            MachineVerdict::Unreachable(_) => "unreachable",
            MachineVerdict::Reachable(_) => "reachable",
            MachineVerdict::Hazard(_) => "hazard",
            MachineVerdict::Unsupported(_) => "unsupported",
        }
    }
}

/// The extent and assumptions of an exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exploration {
    pub profile: Profile,
    /// Names of the facts that are relevant to the text.
    pub assumptions: Vec<String>,
    /// The number of explored placements.
    pub placements: u32,
    /// The number of visited states over all placements.
    pub states: u64,
    pub outcomes: BTreeSet<Vec<u64>>,
}

/// An execution that leads to an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The outcome, with values in the order of [`MachineQuestion::observed`].
    pub outcome: Vec<u64>,
    pub placement: WavePlacement,
    /// Its events, in order.
    pub steps: Vec<TraceStep>,
    /// The exploration up to this point.
    pub exploration: Exploration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WavePlacement {
    /// The compute unit of each wave of each workgroup.
    pub units: Vec<Vec<u8>>,
    /// The shader array of each compute unit.
    pub arrays: Vec<u8>,
}

/// An event of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Workgroup of the wave.
    pub workgroup: usize,
    /// The wave within it.
    pub wave: usize,
    pub kernel: usize,
    /// The line of the machine text.
    pub line: u32,
    pub description: String,
}

/// A use of a register whose load may not have returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {register} is used, and the load of line {load} need not have returned")]
pub struct Hazard {
    pub kernel: usize,
    /// The line that uses it.
    pub line: u32,
    /// The register, such as `v2`.
    pub register: String,
    pub load: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Unsupported {
    pub kernel: usize,
    /// The line, if a single one is the cause.
    pub line: Option<u32>,
    /// The name of the opcode, loop or limit.
    pub what: String,
}
