//! Kernels of graphics stages in a plan: how they are drawn, and who has claimed a place twice.

use plan::{Buffer, BufferId, DeviceError, Drawing, Memory, Prepared, Stage, Stages};
use shaders::carrier::{Carrier, Cells, FIRST_CLAIM};
use shaders::{Kernel, Phase, Program};

/// How the workgroups of a kernel are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// Vertices: so many a workgroup.
    Vertices(u32),
    /// A point for each workgroup.
    Points(Cells),
}

impl Drawn {
    /// Of a kernel; `None` where it is dispatched.
    pub fn of(kernel: &Kernel) -> Option<Drawn> {
        match &kernel.carrier {
            Carrier::Compute => None,
            Carrier::Vertex => Some(Drawn::Vertices(kernel.workgroup_size)),
            Carrier::Fragment { cells, .. } => Some(Drawn::Points(*cells)),
        }
    }

    /// The draw of so many workgroups.
    pub fn drawing(self, workgroups: u32) -> Drawing {
        match self {
            Drawn::Vertices(each) => Drawing { points: workgroups * each, extent: (1, 1) },
            Drawn::Points(cells) => Drawing { points: workgroups, extent: cells.extent(workgroups) },
        }
    }
}

/// What the invocations of a kernel are, for a device.
pub(crate) fn stage(kernel: &Kernel) -> Stage {
    match &kernel.carrier {
        Carrier::Compute => Stage::Compute,
        Carrier::Vertex => Stage::Vertex,
        Carrier::Fragment { positions, .. } => Stage::Fragment { positions: positions.clone() },
    }
}

/// The stages of the phases before one, and its own.
pub(crate) fn stages_around(program: &Program, phase: usize) -> (Stages, Stages) {
    let of = |phases: &[Phase]| {
        let kernels = phases.iter().flat_map(|phase| &phase.parts).map(|part| stage(&part.kernel).set());
        kernels.fold(Stages::NONE, Stages::with)
    };
    let (before, after) = program.phases.split_at(phase.min(program.phases.len()));
    (of(before), of(after.get(..1).unwrap_or_default()))
}

/// Workgroups that one draw of any kernel of a program has at most.
pub(crate) fn most_workgroups(program: &Program) -> u32 {
    let most = program.kernels().map(|kernel| kernel.carrier.most_workgroups(kernel.workgroup_size));
    most.min().unwrap_or(u32::MAX)
}

/// Words of the claims of a kernel with so many workgroups; 0 where nothing is drawn.
pub(crate) fn claim_words(program: &Program, workgroups: u32) -> u64 {
    let drawn = program.kernels().filter(|kernel| Drawn::of(kernel).is_some());
    let words = drawn.map(|kernel| u64::from(workgroups) * u64::from(kernel.workgroup_size));
    words.max().map_or(0, |words| words + u64::from(FIRST_CLAIM))
}

/// The claims of the kernels of a plan, one buffer for each that is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    buffers: Vec<BufferId>,
    words: u64,
}

impl Claims {
    /// None yet, of so many words each.
    pub fn new(words: u64) -> Claims {
        Claims { buffers: Vec::new(), words }
    }

    /// The buffers.
    pub fn buffers(&self) -> &[BufferId] {
        &self.buffers
    }

    /// Adds the buffer of a kernel, where it is drawn.
    pub fn add(&mut self, kernel: &Kernel, buffers: &mut Vec<Buffer>) -> Option<BufferId> {
        Drawn::of(kernel)?;
        let id = BufferId(buffers.len() as u32);
        buffers.push(Buffer { words: self.words, memory: Memory::Device, name: "claims" });
        self.buffers.push(id);
        Some(id)
    }

    /// Zeroes them where the host reaches them.
    ///
    /// # Errors
    /// When the device does not let the host write.
    pub fn clear(&self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        self.buffers.iter().try_for_each(|buffer| {
            prepared.write(*buffer)?.fill(0);
            Ok(())
        })
    }

    /// Invocations that found their place claimed.
    ///
    /// # Errors
    /// When the device does not give them.
    pub fn repeated(&self, prepared: &mut dyn Prepared) -> Result<u64, DeviceError> {
        let mut all = 0;
        for buffer in &self.buffers {
            let first = prepared.fetch(*buffer, 1)?.first().copied();
            all += u64::from(first.unwrap_or_default());
        }
        Ok(all)
    }
}
