//! Kernels of graphics stages in a plan: their draws, and the detection of repeated invocations.

use plan::{Buffer, BufferId, BufferMemory, DeviceError, Drawing, KernelStage, Prepared, StageMask};
use shaders::carrier::{Carrier, FIRST_CLAIM, ViewportLayout};
use shaders::draw::DrawModules;
use shaders::{CompiledKernel, DispatchPhase, Program, ProgramKernel};

use crate::dispatch::Workgroups;

/// How the workgroups of a kernel map to a draw.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DrawMapping {
    /// Vertices, this many per workgroup.
    Vertices(u32),
    /// One point per workgroup.
    Points(ViewportLayout),
    /// One point per workgroup, followed by vertices: this many per workgroup, and workgroups per group.
    PointsAndVertices(ViewportLayout, u32, u32),
}

impl DrawMapping {
    /// Returns the draw of a kernel; `None` if it is dispatched.
    pub fn for_kernel(kernel: &CompiledKernel) -> Option<DrawMapping> {
        match &kernel.carrier {
            Carrier::Compute | Carrier::Mesh | Carrier::Task { .. } => None,
            Carrier::Vertex | Carrier::VertexWithFragments { .. } => {
                Some(DrawMapping::Vertices(kernel.workgroup_size))
            }
            Carrier::Fragment { layout: cells, .. } => Some(DrawMapping::Points(*cells)),
        }
    }

    /// Adds the vertices of the same draw to a fragment kernel.
    pub fn with_vertices(self, vertices: &CompiledKernel) -> DrawMapping {
        match self {
            DrawMapping::Points(cells) | DrawMapping::PointsAndVertices(cells, ..) => {
                DrawMapping::PointsAndVertices(
                    cells,
                    vertices.workgroup_size,
                    vertices.workgroups_per_group(),
                )
            }
            DrawMapping::Vertices(_) => self,
        }
    }

    /// Returns the draw for a kernel, in `all` groups of `workgroups_per_group`.
    pub fn to_drawing(self, workgroups_per_group: u32, all: Workgroups) -> Drawing {
        let workgroups = all.for_classes(workgroups_per_group);
        match self {
            DrawMapping::Vertices(each) => Drawing { points: workgroups * each, extent: (1, 1) },
            DrawMapping::Points(cells) => Drawing { points: workgroups, extent: cells.extent(workgroups) },
            DrawMapping::PointsAndVertices(cells, each, of_vertices) => {
                let vertices = all.for_classes(of_vertices) * each;
                Drawing { points: workgroups + vertices, extent: cells.extent(workgroups) }
            }
        }
    }
}

/// Returns the launches of a phase: a part, and the vertex part of the same draw.
pub(crate) fn group_launches(parts: &[ProgramKernel]) -> Vec<(&ProgramKernel, Option<&ProgramKernel>)> {
    let mut launches: Vec<(&ProgramKernel, Option<&ProgramKernel>)> = Vec::with_capacity(parts.len());
    for part in parts {
        match launches.last_mut() {
            // Such a kernel follows the fragment kernel of its draw.
            Some((_, vertices)) if matches!(part.kernel.carrier, Carrier::VertexWithFragments { .. }) => {
                *vertices = Some(part);
            }
            _ => launches.push((part, None)),
        }
    }
    launches
}

/// Returns the device kernel of a draw whose fragments and vertices both run threads.
pub(crate) fn combined_kernel(fragments: plan::Kernel, together: &DrawModules) -> plan::Kernel {
    plan::Kernel {
        words: together.fragment.clone(),
        bindings: u32::try_from(together.bindings.len()).unwrap_or(u32::MAX),
        stage: KernelStage::VertexAndFragment { vertex_shader: together.vertex.clone() },
        ..fragments
    }
}

pub(crate) fn kernel_stage(kernel: &CompiledKernel) -> KernelStage {
    match &kernel.carrier {
        Carrier::Compute => KernelStage::Compute,
        Carrier::Vertex | Carrier::VertexWithFragments { .. } => KernelStage::Vertex,
        Carrier::Fragment { point_shader: positions, .. } => {
            KernelStage::Fragment { vertex_shader: positions.clone() }
        }
        Carrier::Mesh => KernelStage::Mesh,
        Carrier::Task { mesh } => KernelStage::Task { mesh_shader: mesh.clone() },
    }
}

/// Returns the stages of all earlier phases, and those of one phase.
pub(crate) fn stages_around(program: &Program, phase: usize) -> (StageMask, StageMask) {
    let stages_of = |phases: &[DispatchPhase]| {
        let kernels =
            phases.iter().flat_map(|phase| &phase.kernels).map(|part| kernel_stage(&part.kernel).as_set());
        kernels.fold(StageMask::NONE, StageMask::with)
    };
    let (before, after) = program.phases.split_at(phase.min(program.phases.len()));
    (stages_of(before), stages_of(after.get(..1).unwrap_or_default()))
}

/// Returns the maximum number of workgroups in a draw of any kernel of a program.
pub(crate) fn max_draw_workgroups(program: &Program) -> u32 {
    // The tightest limit of the kernels applies to all.
    let most = program.kernels().map(|kernel| kernel.carrier.max_workgroups(kernel.workgroup_size));
    most.min().unwrap_or(u32::MAX)
}

/// Returns the words of the claims of a kernel with this many workgroups; 0 without draws.
pub(crate) fn claim_words(program: &Program, workgroups: u32) -> u64 {
    let drawn = program.kernels().filter(|kernel| DrawMapping::for_kernel(kernel).is_some());
    let words = drawn.map(|kernel| u64::from(workgroups) * u64::from(kernel.workgroup_size));
    words.max().map_or(0, |words| words + u64::from(FIRST_CLAIM))
}

/// The claim buffers of a plan, one for each drawn kernel.
#[derive(Clone, Debug)]
pub(crate) struct ClaimBuffers {
    buffers: Vec<BufferId>,
    words: u64,
    memory: BufferMemory,
}

impl ClaimBuffers {
    /// Creates an empty set of buffers with this many words each.
    pub fn new(words: u64, memory: BufferMemory) -> ClaimBuffers {
        ClaimBuffers { buffers: Vec::new(), words, memory }
    }

    pub fn buffers(&self) -> &[BufferId] {
        &self.buffers
    }

    /// Adds the buffer of a kernel, if it is drawn.
    pub fn add(&mut self, kernel: &CompiledKernel, buffers: &mut Vec<Buffer>) -> Option<BufferId> {
        DrawMapping::for_kernel(kernel)?;
        let id = BufferId(buffers.len() as u32);
        buffers.push(Buffer { words: self.words, memory: self.memory, name: "claims" });
        self.buffers.push(id);
        Some(id)
    }

    /// Zeroes the buffers that the host can write.
    ///
    /// # Errors
    /// If the device does not let the host write.
    pub fn clear(&self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        self.buffers.iter().try_for_each(|buffer| {
            prepared.write(*buffer)?.fill(0);
            Ok(())
        })
    }

    /// Counts the invocations that found their slot claimed already.
    ///
    /// # Errors
    /// If the buffers cannot be read.
    pub fn count_repeated(&self, prepared: &mut dyn Prepared) -> Result<u64, DeviceError> {
        let mut all = 0;
        for buffer in &self.buffers {
            let first = prepared.fetch(*buffer, 1)?.first().copied();
            all += u64::from(first.unwrap_or_default());
        }
        Ok(all)
    }
}
