//! What plays the workgroups of a kernel: those of a dispatch, the vertices of a list of points, or the fragments of such points.
//!
//! A kernel asks only which workgroup it is of, and which invocation there; formulas, rounds, meetings and results are the same in
//! every stage. What differs:
//!
//! - **Vertex** `v` of a list of points is invocation `v mod L` of workgroup `v / L`, where `L` is the kernel's size of a workgroup.
//!   Points are not rasterized.
//! - **Fragments**: each workgroup is a point of [`Cells::size`] pixels in a cell of its own ([`Cells`]), whose fragments are its
//!   invocations, row by row. Those beyond the last idle.
//! - **Vertices beside fragments of one draw**: the first vertices place the points, one for each workgroup of the fragments, and play
//!   nothing; those behind them play as above, and their points lie outside of all that is seen.
//! - **Fragments that overlap**: the classes of a group whose threads name one interlocked section share a cell ([`Overlap`]), and each
//!   fragment gets the number of its point. Each executes the ends of its section exactly once: whoever plays nothing goes past them too.
//!
//! - **Mesh and task shaders** have workgroups as compute shaders have, and differ in how they end: no primitive, and no mesh shader.
//!
//! A vertex is shaded at least once, and a fragment may be shaded again or for its neighbours' sake alone
//! (Vulkan, "Vertex Shader Execution", "Fragment Shader Execution", "Helper Invocations"). So helpers return at once, or
//! play without any effect ([`Stage::FragmentHelpers`](crate::variant::Stage::FragmentHelpers)), and each
//! other invocation *claims* its place: it adds 1 to word [`FIRST_CLAIM`]` + i` of the claims ([`Binding::Claims`](crate::Binding::Claims))
//! for the `i`-th place, relaxed. Whoever finds another one there adds 1 to the first word, which counts them, and returns. That
//! orders nothing. Whoever is first at the first place of a workgroup leaves its [receipt](crate::contract). The caller zeroes the
//! claims before each draw.

use rspirv::dr::Operand;
use rspirv::spirv::{AddressingModel, BuiltIn, Capability, LoopControl, MemoryModel, Op, Word};

use crate::module::{EntryPoint, Module, Preamble};
use crate::variant::Target;

/// Pixels of the viewport in each direction: every device has as many.
pub const VIEWPORT: u32 = 4096;
/// The word of the claims that the first place has. Word 0 counts repeated invocations, in a cache line of its own.
pub const FIRST_CLAIM: u32 = 16;
/// Vertices of a draw at most.
const MOST_VERTICES: u32 = 1 << 24;
/// Workgroups of a mesh or task shader in one direction: every device with the stage has as many (Vulkan, "Required Limits",
/// `maxMeshWorkGroupCount` and `maxTaskWorkGroupCount`).
const MOST_MESH_WORKGROUPS: u32 = 65_535;
/// Invocations of such a workgroup: likewise (`maxMeshWorkGroupInvocations`, `maxTaskWorkGroupInvocations`).
pub(crate) const MOST_MESH_INVOCATIONS: u32 = 128;
/// The extension of modules with them.
pub(crate) const MESH_EXTENSION: &str = "SPV_EXT_mesh_shader";

/// What the invocations of a kernel are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Those of a dispatch.
    #[default]
    Compute,
    /// Vertices of a list of points.
    Vertex,
    /// Vertices of a draw whose fragments play as well: those of the kernel before it in its phase.
    VertexBesideFragments {
        /// Where the points of those lie.
        cells: Cells,
        /// Workgroups of a group of those: so many points a group, and one for each workgroup of memory stress, come first.
        workgroups_of_group: u32,
    },
    /// Fragments of points in cells.
    Fragment {
        /// Where the points lie.
        cells: Cells,
        /// SPIR-V words of the vertex shader that puts them there: vertex `w` is workgroup `w`.
        positions: Vec<u32>,
        /// Which of them lie upon one another.
        overlap: Option<Overlap>,
    },
    /// Those of workgroups of a mesh shader, which gives no primitive.
    Mesh,
    /// Those of workgroups of a task shader, which launches no mesh shader.
    Task {
        /// SPIR-V words of the mesh shader that a pipeline has behind it.
        mesh: Vec<u32>,
    },
}

/// How workgroups of fragments lie in the viewport: workgroup `w` has the cell in column `w / rows` and row `w mod rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Pixels from one cell to the next in x and y.
    pub pitch: (u32, u32),
    /// Pixels of a point in each direction: even, so that whole quads are covered where it begins at one, and no pixel's centre
    /// lies on an edge.
    pub size: u32,
    /// Pixels of a cell before its point in each direction.
    pub margin: u32,
    /// Cells of a column.
    pub rows: u32,
}

impl Cells {
    /// Cells for workgroups of so many invocations, no closer than `pitch`, with so many pixels around each point.
    pub fn new(invocations: u32, pitch: (u32, u32), margin: u32) -> Cells {
        let invocations = invocations.clamp(1, VIEWPORT);
        let side = invocations.isqrt();
        let size = (side + u32::from(side * side < invocations)).next_multiple_of(2);
        let least = (size + 2 * margin).min(VIEWPORT);
        let pitch = (pitch.0.clamp(least, VIEWPORT), pitch.1.clamp(least, VIEWPORT));
        Cells { pitch, size, margin, rows: VIEWPORT / pitch.1 }
    }

    /// Workgroups at most.
    pub fn most(&self) -> u32 {
        (VIEWPORT / self.pitch.0).saturating_mul(self.rows)
    }

    /// Width and height in pixels of what so many workgroups cover.
    pub fn extent(&self, workgroups: u32) -> (u32, u32) {
        (workgroups.div_ceil(self.rows.max(1)) * self.pitch.0, workgroups.min(self.rows) * self.pitch.1)
    }
}

/// Workgroups of fragments that lie upon one another: of `C` classes, workgroup `w` plays class `w mod C` for group `w / C`, whatever the
/// parameters say, so that points are drawn in the order of the classes. The slots of the classes of a group play the same instances,
/// and there is one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// By class, which cell of its group it has; classes with one number share it.
    pub cells: Vec<u32>,
}

impl Overlap {
    /// Cells of a group.
    pub fn of_group(&self) -> u32 {
        self.cells.iter().max().map_or(1, |last| last + 1)
    }

    /// The cell of a workgroup.
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
    /// Whether an invocation plays one round and no more.
    pub fn plays_once(&self) -> bool {
        matches!(self, Carrier::Fragment { overlap: Some(_), .. })
    }

    /// Bytes of memory that a workgroup shares at most, where the stage has a limit of its own: what every device with it has (Vulkan,
    /// "Required Limits", `maxMeshSharedMemorySize` and `maxTaskSharedMemorySize`).
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

    /// Workgroups of so many invocations that one draw has at most; no bound of its own for a dispatch.
    pub fn most_workgroups(&self, invocations: u32) -> u32 {
        match self {
            Carrier::Compute => u32::MAX,
            Carrier::Mesh | Carrier::Task { .. } => MOST_MESH_WORKGROUPS,
            Carrier::Vertex => MOST_VERTICES / invocations.max(1),
            // Half of them for the points.
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

/// The outputs of a vertex shader for a point: position and size.
pub(crate) fn point_outputs(module: &mut Module) -> (Word, Word) {
    let float = module.float(32);
    let vector = module.vector(float, 4);
    (module.built_in_output(BuiltIn::Position, vector), module.built_in_output(BuiltIn::PointSize, float))
}

/// The vertex shader that puts each point into the corner of its cell; where some overlap, it hands its number on.
pub(crate) fn positions(cells: Cells, overlap: Option<&Overlap>, target: Target) -> Vec<u32> {
    let version = if target == Target::Vulkan12 { (1, 5) } else { (1, 3) };
    let mut module = Module::new(Preamble {
        version,
        capabilities: vec![Capability::Shader],
        extensions: Vec::new(),
        addressing: AddressingModel::Logical,
        model: MemoryModel::GLSL450,
        loops: LoopControl::NONE,
    });
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
    module.finish_as(EntryPoint::Vertex)
}

/// A mesh shader that gives no primitive: what a pipeline has behind a task shader.
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
    module.finish_as(EntryPoint::Mesh { workgroup_size: [1, 1, 1] })
}

/// Says that a mesh shader has no vertex and no primitive, where all invocations of the workgroup are.
pub(crate) fn give_no_primitive(module: &mut Module) {
    let none = module.constant(0);
    module.effect(Op::SetMeshOutputsEXT, [none, none].map(Operand::IdRef));
}

/// Ends a task shader with no mesh shader behind it.
pub(crate) fn launch_no_mesh(module: &mut Module) {
    let none = module.constant(0);
    module.effect(Op::EmitMeshTasksEXT, [none, none, none].map(Operand::IdRef));
}

/// The middle of the point of a workgroup.
pub(crate) fn middle_of(module: &mut Module, cells: Cells, workgroup: Word) -> [Word; 2] {
    let rows = module.constant(cells.rows);
    let float = module.float(32);
    let cell = [(Op::UDiv, cells.pitch.0), (Op::UMod, cells.pitch.1)];
    cell.map(|(op, pitch)| {
        let number = module.word(op, &[workgroup, rows]);
        let number = module.on_ids(Op::ConvertUToF, float, &[number]);
        // Everything here is a multiple of a power of two, and exact: from the middle of the point in pixels to -1 ... 1.
        let scale = 2.0 / VIEWPORT as f32;
        let [scaled, middle] = [pitch as f32 * scale, (cells.margin + cells.size / 2) as f32 * scale - 1.0]
            .map(|value| module.constant_of(float, &[value.to_bits()]));
        let corner = module.on_ids(Op::FMul, float, &[number, scaled]);
        module.on_ids(Op::FAdd, float, &[corner, middle])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invocation_has_a_pixel_and_every_workgroup_a_cell() {
        for invocations in [1, 2, 4, 5, 8, 16, 17, 32, 64, 128, 1024] {
            for pitch in [(1, 1), (16, 16), (64, 2), (64, 64), (4096, 4096)] {
                let cells = Cells::new(invocations, pitch, 0);
                assert!(cells.size * cells.size >= invocations && cells.size.is_multiple_of(2));
                assert!((cells.size - 2) * (cells.size - 2) < invocations, "no larger than it must be");
                assert!(cells.pitch.0 >= cells.size && cells.pitch.1 >= cells.size);
                for workgroups in [1, cells.rows, cells.most()] {
                    let (width, height) = cells.extent(workgroups);
                    assert!(width <= VIEWPORT && height <= VIEWPORT);
                    let area = u64::from(width / cells.pitch.0) * u64::from(height / cells.pitch.1);
                    assert!(area >= u64::from(workgroups));
                }
            }
        }
    }
}
