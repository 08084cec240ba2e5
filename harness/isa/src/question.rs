//! What the explorer is asked, and what it answers.

use std::collections::BTreeSet;

use vendor::Descriptors;

use crate::facts::Profile;
use crate::family::AmdFamily;
use crate::text::MachineProgram;

/// Kernels that run at the same time or one after another, their memory, and the outcomes that a model allows.
#[derive(Clone, Debug)]
pub struct MachineQuestion {
    /// Whose machine text it is.
    pub family: AmdFamily,
    /// The kernels.
    pub kernels: Vec<MachineKernel>,
    /// The workgroups that run, each an instance's worth.
    pub workgroups: Vec<Workgroup>,
    /// What stands between each dispatch and the one behind it.
    pub barriers: Vec<DispatchBarrier>,
    /// What memory holds at first; 0 elsewhere.
    pub initial: Vec<InitialMemory>,
    /// What an outcome is made of.
    pub observed: Vec<Observed>,
    /// The outcomes that the model allows, values in the order of `observed`. Every other one is looked for.
    pub allowed: BTreeSet<Vec<u64>>,
}

/// A kernel: its text, and what its descriptors lead to.
#[derive(Clone, Debug)]
pub struct MachineKernel {
    /// The text that was read.
    pub program: MachineProgram,
    /// The descriptors of set 0.
    pub resources: Vec<Resource>,
    /// The space whose start the push constants hold as a device address, where the kernel has one.
    pub address: Option<Space>,
}

/// Number of a piece of memory: buffers, images and addresses that show the same memory have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(pub u16);

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Where it stands in the descriptor set, in bytes.
    pub offset: u32,
    /// What it shows.
    pub shows: Shows,
}

/// What a descriptor shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// A storage buffer from the start of a space.
    Buffer(Space),
    /// A texel buffer: texel `i` is the word at byte `4 × i`.
    Texels(Space),
    /// An image of words: texel `(x, y)` is the word at byte `4 × (y × row + x)`.
    Image {
        /// The memory.
        space: Space,
        /// Texels of a row; 0 for a one-dimensional image.
        row: u32,
    },
}

impl Resource {
    /// Descriptors as a driver lays them out in a set, in the order of their bindings.
    pub fn laid_out(shows: &[Shows], sizes: Descriptors) -> Vec<Resource> {
        let mut next = 0_u32;
        shows
            .iter()
            .map(|shows| {
                let size = match shows {
                    Shows::Image { .. } => sizes.image_bytes,
                    Shows::Buffer(_) | Shows::Texels(_) => sizes.buffer_bytes,
                };
                let offset = next.next_multiple_of(size);
                next = offset.saturating_add(size);
                Resource { offset, shows: *shows }
            })
            .collect()
    }
}

/// A pipeline barrier between two dispatches: the first has ended before the second begins, and of memory what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchBarrier {
    /// The accesses to which memory is made visible, by the words of access masks: `shader_read`.
    pub visible: Vec<String>,
}

/// A workgroup that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workgroup {
    /// Which of [`MachineQuestion::kernels`].
    pub kernel: usize,
    /// Which of the dispatches one after another it belongs to, from 0.
    pub dispatch: usize,
    /// Its number in x within its dispatch.
    pub id: u32,
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// For each of its waves the lanes that take part; the others play other instances.
    pub waves: Vec<Vec<u8>>,
}

/// What memory holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialMemory {
    /// Where.
    pub place: Word,
    /// What.
    pub value: u64,
}

/// Bytes in memory that lie within 8 aligned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The memory.
    pub space: Space,
    /// Bytes from its start.
    pub offset: u32,
    /// 1, 2, 4 or 8.
    pub bytes: u8,
}

/// A part of an outcome: what a word holds when all has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Where.
    pub place: Word,
    /// What it must hold for the outcome to count: a thread that gave up a loop leaves something else.
    pub required: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineVerdict {
    /// No placement and no interleaving shows an outcome that is not allowed.
    Unreachable(Explored),
    /// One does.
    Reachable(Box<Trace>),
    /// A register is read or written before the load that writes it is known to be complete.
    Hazard(Hazard),
    /// The text holds what the machine does not know.
    Unsupported(Unsupported),
}

impl MachineVerdict {
    /// The word for reports.
    pub fn word(&self) -> &'static str {
        match self {
            MachineVerdict::Unreachable(_) => "unreachable",
            MachineVerdict::Reachable(_) => "reachable",
            MachineVerdict::Hazard(_) => "hazard",
            MachineVerdict::Unsupported(_) => "unsupported",
        }
    }
}

/// What an answer rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Which facts were believed.
    pub profile: Profile,
    /// Names of the facts that matter for the instructions in the text.
    pub assumptions: Vec<String>,
    /// Placements that were explored.
    pub placements: u32,
    /// States that were visited, over all placements.
    pub states: u64,
    /// Every outcome that was seen.
    pub outcomes: BTreeSet<Vec<u64>>,
}

/// How an outcome comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The outcome, values in the order of [`MachineQuestion::observed`].
    pub outcome: Vec<u64>,
    /// Where the workgroups were.
    pub placement: WavePlacement,
    /// What happened, in order.
    pub steps: Vec<TraceStep>,
    /// What the answer rests on, so far as it was explored.
    pub explored: Explored,
}

/// Where waves run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WavePlacement {
    /// For each workgroup, for each wave its compute unit.
    pub units: Vec<Vec<u8>>,
    /// For each compute unit its shader array.
    pub arrays: Vec<u8>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Workgroup of the wave.
    pub workgroup: usize,
    /// The wave within it.
    pub wave: usize,
    /// The kernel, for the line.
    pub kernel: usize,
    /// The line of the machine text.
    pub line: u32,
    /// In words.
    pub what: String,
}

/// A register whose load need not have returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {register} is used, and the load of line {load} need not have returned")]
pub struct Hazard {
    /// The kernel.
    pub kernel: usize,
    /// The line that uses it.
    pub line: u32,
    /// The register, such as `v2`.
    pub register: String,
    /// The line of the load.
    pub load: u32,
}

/// What the machine does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Unsupported {
    /// The kernel.
    pub kernel: usize,
    /// The line, if it is one line's fault.
    pub line: Option<u32>,
    /// The opcode, loop or limit by name.
    pub what: String,
}
