//! Carriers: the invocations that run the workgroups of a kernel, in each shader stage.
//!
//! A kernel only needs its workgroup number and its invocation number; formulas, rounds, rendezvous and
//! results are the same in every stage. The differences:
//!
//! - **Vertices**: vertex `v` of a point list is invocation `v mod L` of workgroup `v / L`, where `L` is the
//!   kernel's workgroup size. Points are not rasterized.
//! - **Fragments**: each workgroup is a point of [`ViewportLayout::size`] pixels in its own cell ([`ViewportLayout`]), whose
//!   fragments are its invocations, row by row. Surplus fragments idle.
//! - **Vertices with fragments of the same draw**: the first vertices place the points, one for each
//!   workgroup of the fragments, and run no thread. The remaining vertices are invocations as above, and
//!   their points are outside of the viewport.
//! - **Overlapping fragments**: the classes of a group whose threads name one interlocked section share a
//!   cell ([`FragmentOverlap`]), and each fragment gets the number of its point. Each executes the ends of its
//!   section exactly once, even if it runs no thread.
//! - **Mesh and task shaders** have workgroups like compute shaders. At the end, a mesh shader emits no
//!   primitive, and a task shader no mesh shader.
//!
//! A vertex is shaded at least once, and a fragment may be shaded again or only as a helper (Vulkan, "Vertex
//! Shader Execution", "Fragment Shader Execution", "Helper Invocations"). So helpers return at once, or run
//! without any effect ([`CarrierStage::FragmentHelpers`](crate::variant::CarrierStage::FragmentHelpers)). Each other
//! invocation *claims* its slot: for slot `i`, it adds 1 to word [`FIRST_CLAIM`]` + i` of the claims
//! ([`Binding::Claims`](crate::Binding::Claims)) with a relaxed atomic, which orders nothing. If the slot was
//! claimed already, it adds 1 to the first word, which counts repetitions, and returns. The invocation that
//! claims the first slot of a workgroup leaves its [receipt](crate::contract). The caller zeroes the claims
//! before each draw.

use rspirv::dr::Operand;
use rspirv::spirv::{AddressingModel, BuiltIn, Capability, LoopControl, MemoryModel, Op, Word};

use crate::module::{Module, ModuleStage, Preamble};
use crate::variant::SpirvVersion;

/// Pixels of the viewport in each direction; every device supports this size.
pub const VIEWPORT: u32 = 4096;
/// The word of the first slot's claim. Word 0 counts repeated invocations, in its own cache line.
pub const FIRST_CLAIM: u32 = 16;
/// The maximum number of vertices in a draw.
const MOST_VERTICES: u32 = 1 << 24;
/// The maximum workgroups of a mesh or task shader in one direction, supported by every device with the stage
/// (Vulkan, "Required Limits", `maxMeshWorkGroupCount` and `maxTaskWorkGroupCount`).
const MOST_MESH_WORKGROUPS: u32 = 65_535;
/// The maximum invocations of such a workgroup (`maxMeshWorkGroupInvocations`,
/// `maxTaskWorkGroupInvocations`).
pub(crate) const MOST_MESH_INVOCATIONS: u32 = 128;
/// The extension of modules with these stages.
pub(crate) const MESH_EXTENSION: &str = "SPV_EXT_mesh_shader";

/// The kind of invocations that run a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Invocations of a dispatch.
    #[default]
    Compute,
    /// Vertices of a point list.
    Vertex,
    /// Vertices of a draw whose fragments also run threads, with the kernel before it in its phase.
    VertexBesideFragments {
        /// The positions of the fragments' points.
        cells: ViewportLayout,
        /// Workgroups of a group of fragments. The draw starts with this many points per group, and one for
        /// each workgroup of memory stress.
        workgroups_of_group: u32,
    },
    /// Fragments of points in cells.
    Fragment {
        /// The positions of the points.
        cells: ViewportLayout,
        /// SPIR-V words of the vertex shader that places the points: vertex `w` is workgroup `w`.
        positions: Vec<u32>,
        /// The points that overlap.
        overlap: Option<FragmentOverlap>,
    },
    /// Invocations of a mesh shader that emits no primitive.
    Mesh,
    /// Invocations of a task shader that launches no mesh shader.
    Task {
        /// SPIR-V words of the mesh shader that the pipeline requires.
        mesh: Vec<u32>,
    },
}

/// The layout of fragment workgroups in the viewport: workgroup `w` is in column `w / rows` and row `w mod
/// rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewportLayout {
    /// Pixels between two cells in x and y.
    pub pitch: (u32, u32),
    /// Pixels of a point in each direction. Even, so that it covers whole quads if it starts at one, and no
    /// pixel's centre is on an edge.
    pub size: u32,
    /// Pixels of a cell before its point in each direction.
    pub margin: u32,
    /// Cells of a column.
    pub rows: u32,
}

impl ViewportLayout {
    /// Creates cells for workgroups of this many invocations, at a distance of at least `pitch`, with
    /// `margin` pixels around each point.
    pub fn new(invocations: u32, pitch: (u32, u32), margin: u32) -> ViewportLayout {
        let invocations = invocations.clamp(1, VIEWPORT);
        let side = invocations.isqrt();
        let size = (side + u32::from(side * side < invocations)).next_multiple_of(2);
        let least = (size + 2 * margin).min(VIEWPORT);
        let pitch = (pitch.0.clamp(least, VIEWPORT), pitch.1.clamp(least, VIEWPORT));
        ViewportLayout { pitch, size, margin, rows: VIEWPORT / pitch.1 }
    }

    /// Returns the maximum number of workgroups.
    pub fn most(&self) -> u32 {
        (VIEWPORT / self.pitch.0).saturating_mul(self.rows)
    }

    /// Returns width and height in pixels of the area of this many workgroups.
    pub fn extent(&self, workgroups: u32) -> (u32, u32) {
        (workgroups.div_ceil(self.rows.max(1)) * self.pitch.0, workgroups.min(self.rows) * self.pitch.1)
    }
}

/// Overlapping fragment workgroups. Of `C` classes, workgroup `w` runs class `w mod C` for group `w / C`,
/// independent of the parameters, so that points are drawn in the order of the classes. The slots of all
/// classes of a group run the same instances, in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentOverlap {
    /// For each class, the index of its cell in the group; classes with the same index share it.
    pub cells: Vec<u32>,
}

impl FragmentOverlap {
    /// Returns the cells of a group.
    pub fn of_group(&self) -> u32 {
        self.cells.iter().max().map_or(1, |last| last + 1)
    }

    /// Returns the cell of a workgroup.
    fn cell_of(&self, module: &mut Module, workgroup: Word) -> Word {
        let [classes, of_group] =
            [self.cells.len() as u32, self.of_group()].map(|count| module.constant(count));
        let group = module.word(Op::UDiv, &[workgroup, classes]);
        let class = module.word(Op::UMod, &[workgroup, classes]);
        let mut within = module.constant(0);
        for (number, cell) in (0..).zip(&self.cells).filter(|(_, cell)| **cell > 0) {
            let [number, cell] = [number, *cell].map(|value| module.constant(value));
            let is_it = module.truth(Op::IEqual, &[class, number]);
            within = module.word(Op::Select, &[is_it, cell, within]);
        }
        let first = module.word(Op::IMul, &[group, of_group]);
        module.word(Op::IAdd, &[first, within])
    }
}

impl Carrier {
    /// Returns true if an invocation runs only one round.
    pub fn plays_once(&self) -> bool {
        matches!(self, Carrier::Fragment { overlap: Some(_), .. })
    }

    /// Returns the maximum shared memory of a workgroup in bytes, if the stage has its own limit: the value
    /// that every device supports (Vulkan, "Required Limits", `maxMeshSharedMemorySize` and
    /// `maxTaskSharedMemorySize`).
    pub fn most_workgroup_bytes(&self) -> u32 {
        match self {
            Carrier::Mesh => 28_672,
            Carrier::Task { .. } => 32_768,
            Carrier::Compute
            | Carrier::Vertex
            | Carrier::VertexBesideFragments { .. }
            | Carrier::Fragment { .. } => u32::MAX,
        }
    }

    /// Returns the maximum number of workgroups of this size in one draw; unlimited for a dispatch.
    pub fn most_workgroups(&self, invocations: u32) -> u32 {
        match self {
            Carrier::Compute => u32::MAX,
            Carrier::Mesh | Carrier::Task { .. } => MOST_MESH_WORKGROUPS,
            Carrier::Vertex => MOST_VERTICES / invocations.max(1),
            // The other half is for the points.
            Carrier::VertexBesideFragments { .. } => MOST_VERTICES / 2 / invocations.max(1),
            Carrier::Fragment { cells, .. } => cells.most(),
        }
    }
}

/// Writes the position and the size of a point.
pub(crate) fn write_point(module: &mut Module, (position, size): (Word, Word), at: [Word; 2], pixels: u32) {
    let float = module.float(32);
    let [zero, one, pixels] =
        [0.0, 1.0, pixels as f32].map(|value: f32| module.constant_of(float, &[value.to_bits()]));
    let vector = module.vector(float, 4);
    let place = module.on_ids(Op::CompositeConstruct, vector, &[at[0], at[1], zero, one]);
    module.effect(Op::Store, [position, place].map(Operand::IdRef));
    module.effect(Op::Store, [size, pixels].map(Operand::IdRef));
}

/// Declares the outputs of a vertex shader for a point: position and size.
pub(crate) fn point_outputs(module: &mut Module) -> (Word, Word) {
    let float = module.float(32);
    let vector = module.vector(float, 4);
    (module.built_in_output(BuiltIn::Position, vector), module.built_in_output(BuiltIn::PointSize, float))
}

/// Returns the vertex shader that places each point in its cell. If points overlap, it also outputs their
/// number.
pub(crate) fn positions(
    cells: ViewportLayout,
    overlap: Option<&FragmentOverlap>,
    target: SpirvVersion,
) -> Vec<u32> {
    let version = if target == SpirvVersion::Vulkan12 { (1, 5) } else { (1, 3) };
    let mut module = Module::new(Preamble::minimal(version));
    let vertex = module.built_in_word(BuiltIn::VertexIndex);
    let outputs = point_outputs(&mut module);
    let number = overlap.map(|_| {
        let word = module.u32;
        module.located_output(0, word)
    });
    let entry = module.id();
    module.begin(entry);
    let vertex = module.word(Op::Load, &[vertex]);
    if let Some(number) = number {
        module.effect(Op::Store, [number, vertex].map(Operand::IdRef));
    }
    let cell = overlap.map_or(vertex, |overlap| overlap.cell_of(&mut module, vertex));
    let at = middle_of(&mut module, cells, cell);
    write_point(&mut module, outputs, at, cells.size);
    module.effect(Op::Return, []);
    module.finish_as(ModuleStage::Vertex).words
}

/// Returns a mesh shader that emits no primitive, for pipelines with a task shader.
pub(crate) fn no_primitive() -> Vec<u32> {
    let mut module = Module::new(Preamble {
        version: (1, 5),
        capabilities: vec![Capability::Shader, Capability::MeshShadingEXT],
        extensions: vec![MESH_EXTENSION],
        addressing: AddressingModel::Logical,
        model: MemoryModel::GLSL450,
        loops: LoopControl::NONE,
    });
    let entry = module.id();
    module.begin(entry);
    give_no_primitive(&mut module);
    module.effect(Op::Return, []);
    module.finish_as(ModuleStage::Mesh { workgroup_size: [1, 1, 1] }).words
}

/// Sets the outputs of a mesh shader to no vertex and no primitive. All invocations of the workgroup must
/// execute it.
pub(crate) fn give_no_primitive(module: &mut Module) {
    let none = module.constant(0);
    module.effect(Op::SetMeshOutputsEXT, [none, none].map(Operand::IdRef));
}

/// Ends a task shader without launching a mesh shader.
pub(crate) fn launch_no_mesh(module: &mut Module) {
    let none = module.constant(0);
    module.effect(Op::EmitMeshTasksEXT, [none, none, none].map(Operand::IdRef));
}

/// Returns the centre of a workgroup's point.
pub(crate) fn middle_of(module: &mut Module, cells: ViewportLayout, workgroup: Word) -> [Word; 2] {
    let rows = module.constant(cells.rows);
    let float = module.float(32);
    let cell = [(Op::UDiv, cells.pitch.0), (Op::UMod, cells.pitch.1)];
    cell.map(|(op, pitch)| {
        let number = module.word(op, &[workgroup, rows]);
        let number = module.on_ids(Op::ConvertUToF, float, &[number]);
        // All values are multiples of a power of two, so that the conversion from pixels to -1 ... 1 is
        // exact.
        let scale = 2.0 / VIEWPORT as f32;
        let [scaled, middle] = [pitch as f32 * scale, (cells.margin + cells.size / 2) as f32 * scale - 1.0]
            .map(|value| module.constant_of(float, &[value.to_bits()]));
        let corner = module.on_ids(Op::FMul, float, &[number, scaled]);
        module.on_ids(Op::FAdd, float, &[corner, middle])
    })
}
