//! Kernels of graphics stages in a plan: how they are drawn, and who has claimed a place twice.

use plan::{Buffer, BufferId, DeviceError, Drawing, Memory, Prepared, Stage, Stages};
use shaders::carrier::{Carrier, Cells, FIRST_CLAIM};
use shaders::together::Together;
use shaders::{Kernel, Part, Phase, Program};

use crate::memory::Workgroups;

/// How the workgroups of a kernel are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// Vertices: so many a workgroup.
    Vertices(u32),
    /// A point for each workgroup.
    Points(Cells),
    /// A point for each workgroup, and behind them vertices: so many a workgroup, and so many workgroups a group.
    Both(Cells, u32, u32),
}

impl Drawn {
    /// Of a kernel; `None` where it is dispatched.
    pub fn of(kernel: &Kernel) -> Option<Drawn> {
        match &kernel.carrier {
            Carrier::Compute | Carrier::Mesh | Carrier::Task { .. } => None,
            Carrier::Vertex | Carrier::VertexBesideFragments { .. } => {
                Some(Drawn::Vertices(kernel.workgroup_size))
            }
            Carrier::Fragment { cells, .. } => Some(Drawn::Points(*cells)),
        }
    }

    /// Of a kernel of fragments with the vertices of its draw.
    pub fn with_vertices(self, vertices: &Kernel) -> Drawn {
        match self {
            Drawn::Points(cells) | Drawn::Both(cells, ..) => {
                Drawn::Both(cells, vertices.workgroup_size, vertices.workgroups_of_group())
            }
            Drawn::Vertices(_) => self,
        }
    }

    /// The draw of a kernel with so many workgroups of a group.
    pub fn drawing(self, of_group: u32, all: Workgroups) -> Drawing {
        let workgroups = all.of(of_group);
        match self {
            Drawn::Vertices(each) => Drawing { points: workgroups * each, extent: (1, 1) },
            Drawn::Points(cells) => Drawing { points: workgroups, extent: cells.extent(workgroups) },
            Drawn::Both(cells, each, of_vertices) => {
                let vertices = all.of(of_vertices) * each;
                Drawing { points: workgroups + vertices, extent: cells.extent(workgroups) }
            }
        }
    }
}

/// The kernels of a phase by draw or dispatch: a part, and the vertices that are of one draw with it.
pub(crate) fn launches(parts: &[Part]) -> Vec<(&Part, Option<&Part>)> {
    let mut launches: Vec<(&Part, Option<&Part>)> = Vec::with_capacity(parts.len());
    for part in parts {
        match launches.last_mut() {
            Some((_, vertices)) if matches!(part.kernel.carrier, Carrier::VertexBesideFragments { .. }) => {
                *vertices = Some(part);
            }
            _ => launches.push((part, None)),
        }
    }
    launches
}

/// The kernel of a draw of fragments and vertices, for a device: one of the fragments with other words and bindings.
pub(crate) fn both(fragments: plan::Kernel, together: &Together) -> plan::Kernel {
    plan::Kernel {
        words: together.fragment.clone(),
        bindings: u32::try_from(together.bindings.len()).unwrap_or(u32::MAX),
        stage: Stage::VertexAndFragment { vertex: together.vertex.clone() },
        ..fragments
    }
}

/// What the invocations of a kernel are, for a device.
pub(crate) fn stage(kernel: &Kernel) -> Stage {
    match &kernel.carrier {
        Carrier::Compute => Stage::Compute,
        Carrier::Vertex | Carrier::VertexBesideFragments { .. } => Stage::Vertex,
        Carrier::Fragment { positions, .. } => Stage::Fragment { positions: positions.clone() },
        Carrier::Mesh => Stage::Mesh,
        Carrier::Task { mesh } => Stage::Task { mesh: mesh.clone() },
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
