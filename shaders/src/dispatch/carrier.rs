//! The workgroup and the index of an invocation, in each stage.

use litmus::{InterlockOrder, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, ExecutionMode, Op, Word};

use super::DispatchEmitter;
use super::place::InvocationStart;
use crate::carrier::{self, Carrier, FIRST_CLAIM, FragmentOverlap, ViewportLayout};
use crate::contract::{Arithmetic, Parameter};
use crate::fixed::Leaving;
use crate::module::{Module, ModuleStage};
use crate::rules::Rule;
use crate::stress::StressParameter;
use crate::variant::{CarrierStage, InterlockMode};

/// The points that the vertices of a draw place for its fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points {
    /// Their positions.
    pub cells: ViewportLayout,
    /// As in [`Carrier::VertexBesideFragments`].
    pub workgroups_of_group: u32,
}

/// The inputs that identify an invocation.
pub(super) enum Inputs {
    Compute {
        workgroup: Word,
        local: Word,
    },
    Vertex {
        index: Word,
        outputs: (Word, Word),
    },
    /// `point` if fragments overlap.
    Fragment {
        coordinates: Word,
        helper: Word,
        cells: ViewportLayout,
        point: Option<Word>,
    },
}

/// An output for results that are not written to memory.
#[derive(Clone, Copy)]
pub(super) enum Output {
    /// The first channel of a color.
    Colour(Word),
    /// The position of a vertex.
    Position(Word),
}

impl Output {
    /// Writes a word to the output.
    pub(super) fn write(self, module: &mut Module, word: Word) {
        match self {
            Output::Colour(colour) => module.effect(Op::Store, [colour, word].map(Operand::IdRef)),
            Output::Position(position) => {
                let float = module.float(32);
                let vector = module.vector(float, 4);
                let x = module.on_ids(Op::ConvertUToF, float, &[word]);
                let one = module.constant_of(float, &[1.0_f32.to_bits()]);
                let place = module.on_ids(Op::CompositeConstruct, vector, &[x, one, one, one]);
                module.effect(Op::Store, [position, place].map(Operand::IdRef));
            }
        }
    }
}

/// The workgroup of an invocation, by its index in x, and the local index.
pub(super) struct Invoked {
    pub workgroup: Word,
    /// The indexes of the workgroup in y and z, combined by OR; `None` for stages with one dimension.
    pub other_axes: Option<Word>,
    pub local: Local,
}

impl Invoked {
    fn in_one_axis(workgroup: Word, local: Word) -> Invoked {
        Invoked { workgroup, other_axes: None, local: Local::Known(local) }
    }
}

/// The index of an invocation in its workgroup.
pub(super) enum Local {
    Input(Word),
    Known(Word),
}

impl DispatchEmitter<'_> {
    /// Returns the carrier of the kernel.
    pub(super) fn carrier(&self) -> Carrier {
        let variant = self.config.variant;
        match variant.stage {
            CarrierStage::Compute => Carrier::Compute,
            CarrierStage::Mesh => Carrier::Mesh,
            CarrierStage::Task => Carrier::Task { mesh: carrier::no_primitive() },
            CarrierStage::Vertex | CarrierStage::VertexFragment => match self.company.points {
                Some(Points { cells, workgroups_of_group }) => {
                    Carrier::VertexBesideFragments { cells, workgroups_of_group }
                }
                None => Carrier::Vertex,
            },
            CarrierStage::Fragment | CarrierStage::FragmentHelpers | CarrierStage::FragmentVertex => {
                let cells = self.cells();
                let overlap = self.overlap();
                let positions = carrier::positions(cells, overlap.as_ref(), variant.target);
                Carrier::Fragment { cells, positions, overlap }
            }
        }
    }

    /// Returns the positions of fragments. If helpers run threads, points start one pixel off the quads, so
    /// that helpers exist.
    fn cells(&self) -> ViewportLayout {
        let margin = u32::from(self.config.variant.stage == CarrierStage::FragmentHelpers);
        ViewportLayout::new(self.layout.workgroup_size, self.config.cell, margin)
    }

    /// Returns the classes that share a cell: those whose threads name one interlocked section. Other threads
    /// have their own cell.
    fn overlap(&self) -> Option<FragmentOverlap> {
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
    pub(super) fn entry_point(&self) -> ModuleStage {
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
            self.output = Some(Output::Colour(self.module.located_output(0, word)));
        }
    }

    /// Declares the inputs.
    pub(super) fn inputs(&mut self) -> Inputs {
        match self.config.variant.stage {
            CarrierStage::Compute | CarrierStage::Mesh | CarrierStage::Task => Inputs::Compute {
                workgroup: self.module.built_in_vector(BuiltIn::WorkgroupId),
                local: self.module.built_in_word(BuiltIn::LocalInvocationIndex),
            },
            CarrierStage::Vertex | CarrierStage::VertexFragment => Inputs::Vertex {
                index: self.module.built_in_word(BuiltIn::VertexIndex),
                outputs: carrier::point_outputs(&mut self.module),
            },
            CarrierStage::Fragment | CarrierStage::FragmentHelpers | CarrierStage::FragmentVertex => {
                let float = self.module.float(32);
                let vector = self.module.vector(float, 4);
                Inputs::Fragment {
                    coordinates: self.module.built_in(BuiltIn::FragCoord, vector),
                    helper: self.module.built_in(BuiltIn::HelperInvocation, self.module.bool),
                    cells: self.cells(),
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
    pub(super) fn workgroup(&mut self, inputs: &Inputs) -> Invoked {
        match *inputs {
            Inputs::Compute { workgroup, local } if self.signs() => {
                let [workgroup, y, z] = self.module.load_components(workgroup);
                let other_axes = Some(self.module.word(Op::BitwiseOr, &[y, z]));
                Invoked { workgroup, other_axes, local: Local::Input(local) }
            }
            Inputs::Compute { workgroup, local } => {
                let workgroup = self.module.load_x(workgroup);
                Invoked { workgroup, other_axes: None, local: Local::Input(local) }
            }
            Inputs::Vertex { index, outputs } => {
                let mut index = self.module.word(Op::Load, &[index]);
                match self.company.points {
                    Some(points) => index = self.place_points(points, index, outputs),
                    None => {
                        let float = self.module.float(32);
                        let zero = self.module.constant_of(float, &[0]);
                        carrier::write_point(&mut self.module, outputs, [zero, zero], 1);
                    }
                }
                if self.leaves() == Leaving::Output {
                    self.output = Some(Output::Position(outputs.0));
                }
                let size = self.module.constant(self.layout.workgroup_size);
                let local = self.remainder(index, size);
                Invoked::in_one_axis(self.divide(index, size), local)
            }
            Inputs::Fragment { coordinates, helper, cells, point } => {
                let helper = self.module.on_ids(Op::Load, self.module.bool, &[helper]);
                if cells.margin > 0 {
                    self.helper = Some(helper);
                } else {
                    self.leave_if(helper, point.is_some());
                }
                let float = self.module.float(32);
                let vector = self.module.vector(float, 4);
                let pixel = self.module.on_ids(Op::Load, vector, &[coordinates]);
                let [(column, x), (row, y)] =
                    [(0, cells.pitch.0), (1, cells.pitch.1)].map(|(axis, pitch)| {
                        let operands = [Operand::IdRef(pixel), Operand::LiteralBit32(axis)];
                        let place = self.module.value(Op::CompositeExtract, float, operands);
                        let place = self.module.word(Op::ConvertFToU, &[place]);
                        let pitch = self.module.constant(pitch);
                        let (cell, within) = (self.divide(place, pitch), self.remainder(place, pitch));
                        (cell, self.pixel_of_point(within, cells))
                    });
                let [rows, size] = [cells.rows, cells.size].map(|value| self.module.constant(value));
                let first = self.multiply(y, size);
                let local = self.add(first, x);
                if cells.size * cells.size > self.layout.workgroup_size {
                    let end = self.module.constant(self.layout.workgroup_size);
                    let idle = self.module.truth(Op::UGreaterThanEqual, &[local, end]);
                    self.leave_if(idle, point.is_some());
                }
                if let Some(point) = point {
                    return Invoked::in_one_axis(self.module.word(Op::Load, &[point]), local);
                }
                let first = self.multiply(column, rows);
                Invoked::in_one_axis(self.add(first, row), local)
            }
        }
    }

    /// Places the points of the draw's fragments, and all other vertices outside of the viewport. Returns the
    /// index among the other vertices; point vertices return from the shader.
    fn place_points(&mut self, points: Points, index: Word, outputs: (Word, Word)) -> Word {
        let groups = self.parameter(Parameter::Groups);
        let of_group = self.module.constant(points.workgroups_of_group);
        let mut count = self.multiply(groups, of_group);
        if self.config.stressed {
            let block = self.stress_block();
            let more = block.load(&mut self.module, StressParameter::Workgroups);
            count = self.add(count, more);
        }
        let places = self.module.truth(Op::ULessThan, &[index, count]);
        let float = self.module.float(32);
        let outside = self.module.constant_of(float, &[2.0_f32.to_bits()]);
        let at = carrier::middle_of(&mut self.module, points.cells, index)
            .map(|at| self.module.on_ids(Op::Select, float, &[places, at, outside]));
        carrier::write_point(&mut self.module, outputs, at, points.cells.size);
        self.return_if(places);
        self.module.word(Op::ISub, &[index, count])
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
    pub(super) fn end(&mut self) {
        match self.config.variant.stage {
            CarrierStage::Task => carrier::launch_no_mesh(&mut self.module),
            CarrierStage::Mesh => {
                carrier::give_no_primitive(&mut self.module);
                self.module.effect(Op::Return, []);
            }
            _ => self.module.effect(Op::Return, []),
        }
    }

    /// Returns the index of the invocation in its workgroup.
    pub(super) fn local(&mut self, local: Local) -> Word {
        match local {
            Local::Input(input) => self.module.word(Op::Load, &[input]),
            Local::Known(local) => local,
        }
    }

    /// Returns from the shader if the condition holds; if it `stays`, marks the invocation as idle instead.
    fn leave_if(&mut self, condition: Word, stays: bool) {
        if !stays {
            return self.return_if(condition);
        }
        let bool = self.module.bool;
        self.idle = Some(match self.idle {
            Some(idle) => self.module.on_ids(Op::LogicalOr, bool, &[idle, condition]),
            None => condition,
        });
    }

    /// Returns from the shader if the condition holds.
    fn return_if(&mut self, condition: Word) {
        let [leave, stay] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(stay);
        self.module.branch_if(condition, leave, stay);
        self.module.begin(leave);
        self.module.effect(Op::Return, []);
        self.module.begin(stay);
    }

    /// Claims a slot. An invocation of a claimed slot returns, because vertices and fragments may be shaded
    /// again.
    ///
    /// Stress workgroups have no slot and may repeat, as may helpers that run threads. The invocation that
    /// claims the first slot of a workgroup leaves its receipt. Returns the role; with overlapping fragments,
    /// a repeated invocation has no role from here on.
    pub(super) fn claim(
        &mut self,
        place: &InvocationStart,
        (class, group): (Word, Word),
        local: Word,
    ) -> Result<Word, Rule> {
        let Some(claims) = self.claims_buffer else { return Ok(place.role) };
        let receipt = self.receipt(place, (class, group));
        let before = self.module.block();
        let overlaps = self.test.interlock_order().is_some();
        let [scope, relaxed] = self.meets_at();
        let [zero, one, first] = [0, 1, FIRST_CLAIM].map(|value| self.module.constant(value));
        let add = |emitter: &mut Self, index: Word| {
            let pointer = Operand::IdRef(emitter.module.element(claims, index));
            let operands = [pointer, scope.clone(), relaxed.clone(), Operand::IdRef(one)];
            emitter.module.value(Op::AtomicIAdd, emitter.module.u32, operands)
        };
        let [plays, goes_on, claiming, again] = std::array::from_fn(|_| self.module.id());
        let none = self.module.constant(self.layout.roles.len() as u32);
        let role = match self.helper {
            Some(helper) => self.module.word(Op::Select, &[helper, none, place.role]),
            None => place.role,
        };
        let has_role = self.module.truth(Op::INotEqual, &[role, none]);
        self.module.selection_merge(goes_on);
        self.module.branch_if(has_role, claiming, goes_on);
        self.module.begin(claiming);
        let groups = self.parameter(Parameter::Groups);
        let earlier = self.multiply(class, groups);
        let number = self.add(earlier, group);
        let size = self.module.constant(self.layout.workgroup_size);
        let start = self.multiply(number, size);
        let index = self.add(start, local);
        let index = self.add(index, first);
        let earlier = add(self, index);
        let repeated = self.module.truth(Op::INotEqual, &[earlier, zero]);
        self.module.selection_merge(plays);
        self.module.branch_if(repeated, again, plays);
        self.module.begin(again);
        add(self, zero);
        if overlaps {
            self.module.branch(plays);
        } else {
            self.module.effect(Op::Return, []);
        }
        self.module.begin(plays);
        let still = overlaps.then(|| self.module.word(Op::Select, &[repeated, none, place.role]));
        if let Some(receipt) = receipt {
            let mut signs = self.module.truth(Op::IEqual, &[local, receipt.zero]);
            if overlaps {
                let comes_first = self.module.truth(Op::IEqual, &[earlier, zero]);
                signs = self.module.truth(Op::LogicalAnd, &[signs, comes_first]);
            }
            self.leave(&receipt, signs)?;
        }
        let after = self.module.block();
        self.module.branch(goes_on);
        self.module.begin(goes_on);
        let Some(still) = still else { return Ok(place.role) };
        let incoming = [place.role, before, still, after].map(Operand::IdRef);
        Ok(self.module.value(Op::Phi, self.module.u32, incoming))
    }
}
