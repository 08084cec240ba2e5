//! The workgroup and the index of an invocation, in each stage.

use litmus::{InterlockOrder, ThreadId};
use rspirv::spirv::{BuiltIn, ExecutionMode, Op, Word};

use super::DispatchEmitter;
use super::rendezvous::InvocationStart;
use crate::carrier::{self, Carrier, FIRST_CLAIM, FragmentOverlap, ViewportLayout};
use crate::contract::{Parameter, WordArithmetic};
use crate::fixed::ResultPlacement;
use crate::module::{ModuleBuilder, ModuleStage};
use crate::rules::Rule;
use crate::stress::StressParameter;
use crate::variant::{CarrierStage, InterlockMode};

/// The points that the vertices of a draw place for its fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentPoints {
    pub layout: ViewportLayout,
    /// As in [`Carrier::VertexWithFragments`].
    pub workgroups_per_group: u32,
}

/// The inputs that identify an invocation.
pub(super) enum InvocationInputs {
    /// The ids of the workgroup and in it.
    Compute { workgroup: Word, local: Word },
    /// The index, and the variables of position and size.
    Vertex { index: Word, outputs: (Word, Word) },
    /// `point` if fragments overlap.
    Fragment { coordinates: Word, helper: Word, cells: ViewportLayout, point: Option<Word> },
}

/// An output for results that are not written to memory.
#[derive(Clone, Copy)]
pub(super) enum StageOutput {
    /// The first channel of a color.
    Colour(Word),
    /// The position of a vertex.
    Position(Word),
}

impl StageOutput {
    pub(super) fn write(self, module: &mut ModuleBuilder, word: Word) {
        match self {
            StageOutput::Colour(colour) => module.store(colour, word),
            StageOutput::Position(position) => {
                let float = module.type_float(32);
                let vector = module.type_vector(float, 4);
                let x = module.emit_on_ids(Op::ConvertUToF, float, &[word]);
                let one = module.typed_constant(float, &[1.0_f32.to_bits()]);
                let place = module.emit_on_ids(Op::CompositeConstruct, vector, &[x, one, one, one]);
                module.store(position, place);
            }
        }
    }
}

/// The workgroup of an invocation, by its index in x, and the local index.
pub(super) struct InvocationIndex {
    pub workgroup: Word,
    /// The indexes of the workgroup in y and z, combined by OR; `None` for stages with one dimension.
    pub other_axes: Option<Word>,
    pub local: LocalIndex,
}

impl InvocationIndex {
    fn with_single_axis(workgroup: Word, local: Word) -> InvocationIndex {
        InvocationIndex { workgroup, other_axes: None, local: LocalIndex::Computed(local) }
    }
}

/// The index of an invocation in its workgroup.
pub(super) enum LocalIndex {
    BuiltIn(Word),
    Computed(Word),
}

impl DispatchEmitter<'_> {
    pub(super) fn carrier(&self) -> Carrier {
        let variant = self.config.variant;
        match variant.stage {
            CarrierStage::Compute => Carrier::Compute,
            CarrierStage::Mesh => Carrier::Mesh,
            CarrierStage::Task => Carrier::Task { mesh: carrier::empty_mesh_shader() },
            CarrierStage::Vertex | CarrierStage::VertexFragment => match self.context.points {
                Some(FragmentPoints { layout: cells, workgroups_per_group: workgroups_of_group }) => {
                    Carrier::VertexWithFragments { layout: cells, workgroups_per_group: workgroups_of_group }
                }
                None => Carrier::Vertex,
            },
            CarrierStage::Fragment | CarrierStage::FragmentHelpers | CarrierStage::FragmentVertex => {
                let cells = self.viewport_layout();
                let overlap = self.fragment_overlap();
                let positions = carrier::point_vertex_shader(cells, overlap.as_ref(), variant.target);
                Carrier::Fragment { layout: cells, point_shader: positions, overlap }
            }
        }
    }

    /// Returns the positions of fragments. If helpers run threads, points start one pixel off the quads, so
    /// that helpers exist.
    fn viewport_layout(&self) -> ViewportLayout {
        let margin = u32::from(self.config.variant.stage == CarrierStage::FragmentHelpers);
        ViewportLayout::new(self.layout.workgroup_size, self.config.fragment_cell, margin)
    }

    /// Returns the classes that share a cell: those whose threads name one interlocked section. Other threads
    /// have their own cell.
    fn fragment_overlap(&self) -> Option<FragmentOverlap> {
        self.test.interlock_order()?;
        let threads = (0..self.test.threads.len()).map(|index| ThreadId(index as u16));
        let mut known: Vec<Option<&str>> = Vec::new();
        let cells = threads.map(|thread| {
            let section = self.test.first_section(thread);
            let shared = section.and_then(|_| known.iter().position(|other| *other == section));
            shared.unwrap_or_else(|| {
                known.push(section);
                known.len() - 1
            }) as u32
        });
        Some(FragmentOverlap { cells: cells.collect() })
    }

    /// Returns the execution mode of interlocked sections.
    fn interlock_mode(&self) -> Option<ExecutionMode> {
        let ordered = self.test.interlock_order()? == InterlockOrder::Ordered;
        Some(match (self.config.variant.interlock, ordered) {
            (InterlockMode::Pixel, true) => ExecutionMode::PixelInterlockOrderedEXT,
            (InterlockMode::Pixel, false) => ExecutionMode::PixelInterlockUnorderedEXT,
            (InterlockMode::Sample, true) => ExecutionMode::SampleInterlockOrderedEXT,
            (InterlockMode::Sample, false) => ExecutionMode::SampleInterlockUnorderedEXT,
            (InterlockMode::ShadingRate, true) => ExecutionMode::ShadingRateInterlockOrderedEXT,
            (InterlockMode::ShadingRate, false) => ExecutionMode::ShadingRateInterlockUnorderedEXT,
        })
    }

    /// Returns the entry point and its execution modes.
    pub(super) fn module_stage(&self) -> ModuleStage {
        match self.config.variant.stage {
            CarrierStage::Compute => {
                ModuleStage::Compute { workgroup_size: self.layout.shape, reconverges: self.uses.reconverges }
            }
            CarrierStage::Mesh => ModuleStage::Mesh { workgroup_size: self.layout.shape },
            CarrierStage::Task => ModuleStage::Task { workgroup_size: self.layout.shape },
            CarrierStage::Vertex | CarrierStage::VertexFragment => ModuleStage::Vertex,
            CarrierStage::Fragment | CarrierStage::FragmentHelpers | CarrierStage::FragmentVertex => {
                ModuleStage::Fragment(self.interlock_mode())
            }
        }
    }

    /// Declares the output for results that are not written to memory. A vertex needs none: it always has a
    /// position.
    pub(super) fn declare_output(&mut self) {
        if self.config.variant.stage.is_fragment() {
            let word = self.module.u32;
            self.output = Some(StageOutput::Colour(self.module.located_output(0, word)));
        }
    }

    pub(super) fn declare_inputs(&mut self) -> InvocationInputs {
        match self.config.variant.stage {
            CarrierStage::Compute | CarrierStage::Mesh | CarrierStage::Task => InvocationInputs::Compute {
                workgroup: self.module.built_in_vector(BuiltIn::WorkgroupId),
                local: self.module.built_in_word(BuiltIn::LocalInvocationIndex),
            },
            CarrierStage::Vertex | CarrierStage::VertexFragment => InvocationInputs::Vertex {
                index: self.module.built_in_word(BuiltIn::VertexIndex),
                outputs: carrier::declare_point_outputs(&mut self.module),
            },
            CarrierStage::Fragment | CarrierStage::FragmentHelpers | CarrierStage::FragmentVertex => {
                let float = self.module.type_float(32);
                let vector = self.module.type_vector(float, 4);
                InvocationInputs::Fragment {
                    coordinates: self.module.built_in_input(BuiltIn::FragCoord, vector),
                    helper: self.module.built_in_input(BuiltIn::HelperInvocation, self.module.bool),
                    cells: self.viewport_layout(),
                    point: self.test.interlock_order().map(|_| self.module.flat_input(0)),
                }
            }
        }
    }

    /// Returns class and group of an overlapping fragment workgroup: points are drawn in the order of the
    /// classes.
    pub(super) fn class_and_group_in_order(&mut self, workgroup: Word) -> (Word, Word) {
        let classes = self.module.constant(self.layout.classes.len() as u32);
        let class = self.remainder(workgroup, classes);
        (class, self.divide(workgroup, classes))
    }

    /// Returns the index of the workgroup and of the invocation in it, which is loaded lazily. Invocations
    /// that run no thread return here, or become idle if all have to continue.
    pub(super) fn emit_invocation_index(&mut self, inputs: &InvocationInputs) -> InvocationIndex {
        match *inputs {
            InvocationInputs::Compute { workgroup, local } if self.has_receipts() => {
                let [workgroup, y, z] = self.module.load_components(workgroup);
                let other_axes = Some(self.module.emit_word(Op::BitwiseOr, &[y, z]));
                InvocationIndex { workgroup, other_axes, local: LocalIndex::BuiltIn(local) }
            }
            InvocationInputs::Compute { workgroup, local } => {
                let workgroup = self.module.load_x(workgroup);
                InvocationIndex { workgroup, other_axes: None, local: LocalIndex::BuiltIn(local) }
            }
            InvocationInputs::Vertex { index, outputs } => {
                let mut index = self.module.emit_word(Op::Load, &[index]);
                match self.context.points {
                    Some(points) => index = self.place_points(points, index, outputs),
                    None => {
                        let float = self.module.type_float(32);
                        let zero = self.module.typed_constant(float, &[0]);
                        carrier::emit_point(&mut self.module, outputs, [zero, zero], 1);
                    }
                }
                if self.result_placement() == ResultPlacement::Output {
                    self.output = Some(StageOutput::Position(outputs.0));
                }
                let size = self.module.constant(self.layout.workgroup_size);
                let local = self.remainder(index, size);
                InvocationIndex::with_single_axis(self.divide(index, size), local)
            }
            InvocationInputs::Fragment { coordinates, helper, cells, point } => {
                let helper = self.module.emit_on_ids(Op::Load, self.module.bool, &[helper]);
                if cells.margin > 0 {
                    self.is_helper = Some(helper);
                } else {
                    self.emit_leave_if(helper, point.is_some());
                }
                let float = self.module.type_float(32);
                let vector = self.module.type_vector(float, 4);
                let pixel = self.module.emit_on_ids(Op::Load, vector, &[coordinates]);
                let [(column, x), (row, y)] =
                    [(0, cells.pitch.0), (1, cells.pitch.1)].map(|(axis, pitch)| {
                        let place = self.module.extract(float, pixel, axis);
                        let place = self.module.emit_word(Op::ConvertFToU, &[place]);
                        let pitch = self.module.constant(pitch);
                        let (cell, within) = (self.divide(place, pitch), self.remainder(place, pitch));
                        (cell, self.pixel_of_point(within, cells))
                    });
                let [rows, size] = [cells.rows, cells.size].map(|value| self.module.constant(value));
                let first = self.multiply(y, size);
                let local = self.add(first, x);
                if cells.size * cells.size > self.layout.workgroup_size {
                    let end = self.module.constant(self.layout.workgroup_size);
                    let idle = self.module.emit_bool(Op::UGreaterThanEqual, &[local, end]);
                    self.emit_leave_if(idle, point.is_some());
                }
                if let Some(point) = point {
                    return InvocationIndex::with_single_axis(
                        self.module.emit_word(Op::Load, &[point]),
                        local,
                    );
                }
                let first = self.multiply(column, rows);
                InvocationIndex::with_single_axis(self.add(first, row), local)
            }
        }
    }

    /// Places the points of the draw's fragments, and all other vertices outside of the viewport. Returns the
    /// index among the other vertices; point vertices return from the shader.
    fn place_points(&mut self, points: FragmentPoints, index: Word, outputs: (Word, Word)) -> Word {
        let groups = self.parameter(Parameter::Groups);
        let of_group = self.module.constant(points.workgroups_per_group);
        let mut count = self.multiply(groups, of_group);
        if self.config.has_stress {
            let block = self.stress_block();
            let more = block.load(&mut self.module, StressParameter::Workgroups);
            count = self.add(count, more);
        }
        let is_point = self.module.emit_bool(Op::ULessThan, &[index, count]);
        let float = self.module.type_float(32);
        let outside = self.module.typed_constant(float, &[2.0_f32.to_bits()]);
        let at = carrier::emit_point_center(&mut self.module, points.layout, index)
            .map(|at| self.module.emit_on_ids(Op::Select, float, &[is_point, at, outside]));
        carrier::emit_point(&mut self.module, outputs, at, points.layout.size);
        self.emit_return_if(is_point);
        self.module.emit_word(Op::ISub, &[index, count])
    }

    /// Returns the pixel of a point for a pixel of its cell. A helper next to the point has the position of a
    /// fragment on the opposite side.
    fn pixel_of_point(&mut self, within: Word, cells: ViewportLayout) -> Word {
        if cells.margin == 0 {
            return within;
        }
        let [before, size] = [cells.size - cells.margin, cells.size].map(|value| self.module.constant(value));
        let behind = self.add(within, before);
        self.remainder(behind, size)
    }

    /// Ends an invocation after it has run.
    pub(super) fn emit_end(&mut self) {
        match self.config.variant.stage {
            CarrierStage::Task => carrier::emit_no_mesh_tasks(&mut self.module),
            CarrierStage::Mesh => {
                carrier::emit_empty_mesh(&mut self.module);
                self.module.emit_void(Op::Return, []);
            }
            _ => self.module.emit_void(Op::Return, []),
        }
    }

    /// Returns the index of the invocation in its workgroup.
    pub(super) fn emit_local_index(&mut self, local: LocalIndex) -> Word {
        match local {
            LocalIndex::BuiltIn(input) => self.module.emit_word(Op::Load, &[input]),
            LocalIndex::Computed(local) => local,
        }
    }

    /// Returns from the shader if the condition holds; if it `must_stay`, marks the invocation as idle instead.
    fn emit_leave_if(&mut self, condition: Word, must_stay: bool) {
        if !must_stay {
            return self.emit_return_if(condition);
        }
        let bool = self.module.bool;
        self.is_idle = Some(match self.is_idle {
            Some(idle) => self.module.emit_on_ids(Op::LogicalOr, bool, &[idle, condition]),
            None => condition,
        });
    }

    /// Returns from the shader if the condition holds.
    fn emit_return_if(&mut self, condition: Word) {
        let [leave, stay] = std::array::from_fn(|_| self.module.id());
        self.module.begin_if(condition, leave, stay);
        self.module.emit_void(Op::Return, []);
        self.module.begin_block(stay);
    }

    /// Claims a slot. An invocation of a claimed slot returns, because vertices and fragments may be shaded
    /// again.
    ///
    /// Stress workgroups have no slot and may repeat, as may helpers that run threads. The invocation that
    /// claims the first slot of a workgroup leaves its receipt. Returns the role; with overlapping fragments,
    /// a repeated invocation has no role from here on.
    pub(super) fn emit_claim(
        &mut self,
        place: &InvocationStart,
        class: Word,
        group: Word,
        local: Word,
    ) -> Result<Word, Rule> {
        let Some(claims) = self.claims_buffer else { return Ok(place.role) };
        let receipt = self.prepare_receipt(place, class, group);
        let before = self.module.current_block();
        let overlaps = self.test.interlock_order().is_some();
        let relaxed = self.relaxed_order();
        let [zero, one, first] = [0, 1, FIRST_CLAIM].map(|value| self.module.constant(value));
        let add = |emitter: &mut Self, index: Word| {
            let pointer = emitter.module.word_pointer(claims, index);
            emitter.module.atomic_add(pointer, relaxed, one)
        };
        let [runs, merge, claiming, repeat] = std::array::from_fn(|_| self.module.id());
        let none = self.module.constant(self.layout.roles.len() as u32);
        let role = match self.is_helper {
            Some(helper) => self.module.emit_word(Op::Select, &[helper, none, place.role]),
            None => place.role,
        };
        let has_role = self.module.emit_bool(Op::INotEqual, &[role, none]);
        self.module.begin_if(has_role, claiming, merge);
        let groups = self.parameter(Parameter::Groups);
        let earlier = self.multiply(class, groups);
        let number = self.add(earlier, group);
        let size = self.module.constant(self.layout.workgroup_size);
        let start = self.multiply(number, size);
        let index = self.add(start, local);
        let index = self.add(index, first);
        let earlier = add(self, index);
        let repeated = self.module.emit_bool(Op::INotEqual, &[earlier, zero]);
        self.module.begin_if(repeated, repeat, runs);
        add(self, zero);
        if overlaps {
            self.module.branch(runs);
        } else {
            self.module.emit_void(Op::Return, []);
        }
        self.module.begin_block(runs);
        let remaining_role =
            overlaps.then(|| self.module.emit_word(Op::Select, &[repeated, none, place.role]));
        if let Some(receipt) = receipt {
            let mut signs = self.module.emit_bool(Op::IEqual, &[local, receipt.zero]);
            if overlaps {
                let comes_first = self.module.emit_bool(Op::IEqual, &[earlier, zero]);
                signs = self.module.emit_bool(Op::LogicalAnd, &[signs, comes_first]);
            }
            self.emit_receipt_if(&receipt, signs)?;
        }
        let after = self.module.current_block();
        self.module.continue_at(merge);
        let Some(still) = remaining_role else { return Ok(place.role) };
        Ok(self.module.phi([place.role, before, still, after]))
    }
}
