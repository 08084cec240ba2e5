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

use crate::module::{ModuleBuilder, ModuleStage, Preamble};
use crate::variant::SpirvVersion;

/// Pixels of the viewport in each direction; every device supports this size.
pub const VIEWPORT_SIZE: u32 = 4096;
/// The word of the first slot's claim. Word 0 counts repeated invocations, in its own cache line.
pub const FIRST_CLAIM: u32 = 16;
/// The maximum number of vertices in a draw.
const MAX_VERTICES: u32 = 1 << 24;
/// The maximum workgroups of a mesh or task shader in one direction, supported by every device with the stage
/// (Vulkan, "Required Limits", `maxMeshWorkGroupCount` and `maxTaskWorkGroupCount`).
const MAX_MESH_WORKGROUPS: u32 = 65_535;
/// The maximum invocations of such a workgroup (`maxMeshWorkGroupInvocations`,
/// `maxTaskWorkGroupInvocations`).
pub(crate) const MAX_MESH_INVOCATIONS: u32 = 128;
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
    VertexWithFragments {
        /// The positions of the fragments' points.
        layout: ViewportLayout,
        /// Workgroups of a group of fragments. The draw starts with this many points per group, and one for
        /// each workgroup of memory stress.
        workgroups_per_group: u32,
    },
    /// Fragments of points in cells.
    Fragment {
        /// The positions of the points.
        layout: ViewportLayout,
        /// SPIR-V words of the vertex shader that places the points: vertex `w` is workgroup `w`.
        point_shader: Vec<u32>,
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
        let invocations = invocations.clamp(1, VIEWPORT_SIZE);
        let side = invocations.isqrt();
        let size = (side + u32::from(side * side < invocations)).next_multiple_of(2);
        let least = (size + 2 * margin).min(VIEWPORT_SIZE);
        let pitch = (pitch.0.clamp(least, VIEWPORT_SIZE), pitch.1.clamp(least, VIEWPORT_SIZE));
        ViewportLayout { pitch, size, margin, rows: VIEWPORT_SIZE / pitch.1 }
    }

    /// Returns the maximum number of workgroups.
    pub fn max_workgroups(&self) -> u32 {
        (VIEWPORT_SIZE / self.pitch.0).saturating_mul(self.rows)
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
    pub fn cells_per_group(&self) -> u32 {
        self.cells.iter().max().map_or(1, |last| last + 1)
    }

    fn emit_cell(&self, module: &mut ModuleBuilder, workgroup: Word) -> Word {
        let [classes, per_group] =
            [self.cells.len() as u32, self.cells_per_group()].map(|count| module.constant(count));
        let group = module.emit_word(Op::UDiv, &[workgroup, classes]);
        let class = module.emit_word(Op::UMod, &[workgroup, classes]);
        let mut within = module.constant(0);
        for (number, cell) in (0..).zip(&self.cells).filter(|(_, cell)| **cell > 0) {
            let [number, cell] = [number, *cell].map(|value| module.constant(value));
            let is_class = module.emit_bool(Op::IEqual, &[class, number]);
            within = module.emit_word(Op::Select, &[is_class, cell, within]);
        }
        let first = module.emit_word(Op::IMul, &[group, per_group]);
        module.emit_word(Op::IAdd, &[first, within])
    }
}

impl Carrier {
    /// Returns true if an invocation runs only one round.
    pub fn is_single_round(&self) -> bool {
        matches!(self, Carrier::Fragment { overlap: Some(_), .. })
    }

    /// Returns the maximum shared memory of a workgroup in bytes, if the stage has its own limit: the value
    /// that every device supports (Vulkan, "Required Limits", `maxMeshSharedMemorySize` and
    /// `maxTaskSharedMemorySize`).
    pub fn max_workgroup_bytes(&self) -> u32 {
        match self {
            Carrier::Mesh => 28_672,
            Carrier::Task { .. } => 32_768,
            Carrier::Compute
            | Carrier::Vertex
            | Carrier::VertexWithFragments { .. }
            | Carrier::Fragment { .. } => u32::MAX,
        }
    }

    /// Returns the maximum number of workgroups of this size in one draw; unlimited for a dispatch.
    pub fn max_workgroups(&self, invocations: u32) -> u32 {
        match self {
            Carrier::Compute => u32::MAX,
            Carrier::Mesh | Carrier::Task { .. } => MAX_MESH_WORKGROUPS,
            Carrier::Vertex => MAX_VERTICES / invocations.max(1),
            // The other half is for the points.
            Carrier::VertexWithFragments { .. } => MAX_VERTICES / 2 / invocations.max(1),
            Carrier::Fragment { layout: cells, .. } => cells.max_workgroups(),
        }
    }
}

/// Writes the position and the size of a point.
pub(crate) fn emit_point(
    module: &mut ModuleBuilder,
    (position, size): (Word, Word),
    at: [Word; 2],
    pixels: u32,
) {
    let float = module.type_float(32);
    let [zero, one, pixels] =
        [0.0, 1.0, pixels as f32].map(|value: f32| module.typed_constant(float, &[value.to_bits()]));
    let vector = module.type_vector(float, 4);
    let place = module.emit_on_ids(Op::CompositeConstruct, vector, &[at[0], at[1], zero, one]);
    module.store(position, place);
    module.store(size, pixels);
}

/// Declares the outputs of a vertex shader for a point: position and size.
pub(crate) fn declare_point_outputs(module: &mut ModuleBuilder) -> (Word, Word) {
    let float = module.type_float(32);
    let vector = module.type_vector(float, 4);
    (module.built_in_output(BuiltIn::Position, vector), module.built_in_output(BuiltIn::PointSize, float))
}

/// Returns the vertex shader that places each point in its cell. If points overlap, it also outputs their
/// number.
pub(crate) fn point_vertex_shader(
    cells: ViewportLayout,
    overlap: Option<&FragmentOverlap>,
    target: SpirvVersion,
) -> Vec<u32> {
    let version = if target == SpirvVersion::Vulkan12 { (1, 5) } else { (1, 3) };
    let mut module = ModuleBuilder::new(Preamble::minimal(version));
    let vertex = module.built_in_word(BuiltIn::VertexIndex);
    let outputs = declare_point_outputs(&mut module);
    let number = overlap.map(|_| {
        let word = module.u32;
        module.located_output(0, word)
    });
    let entry = module.id();
    module.begin_block(entry);
    let vertex = module.emit_word(Op::Load, &[vertex]);
    if let Some(number) = number {
        module.store(number, vertex);
    }
    let cell = overlap.map_or(vertex, |overlap| overlap.emit_cell(&mut module, vertex));
    let at = emit_point_center(&mut module, cells, cell);
    emit_point(&mut module, outputs, at, cells.size);
    module.emit_void(Op::Return, []);
    module.finish_as(ModuleStage::Vertex).words
}

/// Returns a mesh shader that emits no primitive, for pipelines with a task shader.
pub(crate) fn empty_mesh_shader() -> Vec<u32> {
    let mut module = ModuleBuilder::new(Preamble {
        version: (1, 5),
        capabilities: vec![Capability::Shader, Capability::MeshShadingEXT],
        extensions: vec![MESH_EXTENSION],
        addressing: AddressingModel::Logical,
        model: MemoryModel::GLSL450,
        loops: LoopControl::NONE,
    });
    let entry = module.id();
    module.begin_block(entry);
    emit_empty_mesh(&mut module);
    module.emit_void(Op::Return, []);
    module.finish_as(ModuleStage::Mesh { workgroup_size: [1, 1, 1] }).words
}

/// Sets the outputs of a mesh shader to no vertex and no primitive. All invocations of the workgroup must
/// execute it.
pub(crate) fn emit_empty_mesh(module: &mut ModuleBuilder) {
    let none = module.constant(0);
    module.emit_void(Op::SetMeshOutputsEXT, [none, none].map(Operand::IdRef));
}

/// Ends a task shader without launching a mesh shader.
pub(crate) fn emit_no_mesh_tasks(module: &mut ModuleBuilder) {
    let none = module.constant(0);
    module.emit_void(Op::EmitMeshTasksEXT, [none, none, none].map(Operand::IdRef));
}

/// Returns the centre of a workgroup's point.
pub(crate) fn emit_point_center(
    module: &mut ModuleBuilder,
    cells: ViewportLayout,
    workgroup: Word,
) -> [Word; 2] {
    let rows = module.constant(cells.rows);
    let float = module.type_float(32);
    let cell = [(Op::UDiv, cells.pitch.0), (Op::UMod, cells.pitch.1)];
    cell.map(|(op, pitch)| {
        let number = module.emit_word(op, &[workgroup, rows]);
        let number = module.emit_on_ids(Op::ConvertUToF, float, &[number]);
        // All values are multiples of a power of two, so that the conversion from pixels to -1 ... 1 is
        // exact.
        let scale = 2.0 / VIEWPORT_SIZE as f32;
        let [scaled, middle] = [pitch as f32 * scale, (cells.margin + cells.size / 2) as f32 * scale - 1.0]
            .map(|value| module.typed_constant(float, &[value.to_bits()]));
        let corner = module.emit_on_ids(Op::FMul, float, &[number, scaled]);
        module.emit_on_ids(Op::FAdd, float, &[corner, middle])
    })
}
