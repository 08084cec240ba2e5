//! The axes of the grid and of the workgroup that the code uses, and those that its addresses depend on.

use std::collections::{BTreeSet, HashMap};

use rspirv::spirv::{BuiltIn, StorageClass};
use spirv_reader::{
    AtomicKind, ImageOperation, MemoryEffect, SpirvInstruction, SpirvModule, SpirvOperation, SpirvType,
};

use entry_point::dataflow::{Analysis, COMPONENTS, DataFlow, Facts, is_componentwise, is_ordering};

/// A set of axes: bits 0 to 2 for positions in the grid, bits 3 to 5 for positions in the workgroup.
pub(crate) type AxisSet = u8;

/// All axes of the workgroup.
const LOCAL_AXES: AxisSet = 0b11_1000;

pub(crate) fn grid_axis(axis: usize) -> AxisSet {
    1 << axis
}

pub(crate) fn local_axis(axis: usize) -> AxisSet {
    1 << (axis + 3)
}

/// The use of axes by an entry point.
#[derive(Clone, Debug, Default)]
pub(crate) struct AxisUse {
    /// The axes that an address, a stored value, an atomic or a branch other than a bounds check depends on.
    used: AxisSet,
    /// The axes that an ordering comparison uses, as bounds checks do.
    compared: AxisSet,
    /// The axes that the addresses of each access depend on, by site.
    addresses: HashMap<u32, AxisSet>,
}

impl AxisUse {
    /// Analyzes the code of an entry point; with `reached`, only the blocks whose label is reached.
    ///
    /// A site is the number of an instruction in the module's functions.
    pub fn analyze(module: &SpirvModule, function: u32, reached: Option<&[bool]>) -> AxisUse {
        let flow = DataFlow::solve(module, function, reached, AxisAnalysis);
        let mut usage = AxisUse::default();
        for at in &flow.code {
            let instruction = at.instruction;
            match module.operation(instruction) {
                SpirvOperation::Compute { operands, .. } if is_ordering(instruction.op) => {
                    usage.compared |= flow.join_of_values(operands);
                }
                // Local memory and masks of memory operands are irrelevant.
                SpirvOperation::Load { pointer, .. } | SpirvOperation::Store { pointer, .. }
                    if flow.is_local(pointer) => {}
                SpirvOperation::Load { pointer, .. } => usage.add_access(at.site, flow.address_fact(pointer)),
                SpirvOperation::Store { pointer, value, .. } => {
                    usage.add_access(at.site, flow.address_fact(pointer));
                    usage.used |= flow.join_of_values(&[value]);
                }
                SpirvOperation::Image(ImageOperation::Read { image, coordinate, .. })
                | SpirvOperation::Image(ImageOperation::Fetch { image, coordinate, .. }) => {
                    usage.add_access(at.site, flow.address_fact(image) | flow.join_of_values(&[coordinate]));
                }
                SpirvOperation::Image(ImageOperation::Write { image, coordinate, texel, .. }) => {
                    usage.add_access(at.site, flow.address_fact(image) | flow.join_of_values(&[coordinate]));
                    usage.used |= flow.join_of_values(&[texel]);
                }
                SpirvOperation::Atomic(access) => {
                    usage.add_access(at.site, flow.address_fact(access.pointer));
                    let comparator = match access.kind {
                        AtomicKind::CompareExchange { comparator, .. } => Some(comparator),
                        AtomicKind::Load
                        | AtomicKind::Store { .. }
                        | AtomicKind::Exchange { .. }
                        | AtomicKind::Update { .. } => None,
                    };
                    let operands: Vec<u32> = access.kind.value().into_iter().chain(comparator).collect();
                    usage.used |= flow.join_of_values(&operands);
                }
                SpirvOperation::BranchConditional { condition, .. } => {
                    usage.used |= flow.join_of_values(&[condition]);
                }
                SpirvOperation::Switch { selector, .. } => usage.used |= flow.join_of_values(&[selector]),
                // A returned value flows on in the caller.
                SpirvOperation::Return { .. } => {}
                _ if instruction.result == 0 => {
                    usage.used |= flow.join_of_values(module.operands_of(instruction))
                }
                operation => match operation.memory_effect() {
                    MemoryEffect::Access(accesses) => {
                        let shared = accesses.into_iter().flatten().filter(|of| !flow.is_local(of.pointer));
                        shared.for_each(|of| usage.add_access(at.site, flow.address_fact(of.pointer)));
                    }
                    MemoryEffect::None
                    | MemoryEffect::Texel { .. }
                    | MemoryEffect::Atomic(_)
                    | MemoryEffect::Barrier { .. }
                    | MemoryEffect::Interlock
                    | MemoryEffect::Unknown => {}
                },
            }
        }
        usage
    }

    fn add_access(&mut self, site: u32, address: AxisSet) {
        self.addresses.insert(site, address);
        self.used |= address;
    }

    /// Returns the axes of the grid that matter.
    ///
    /// A bounds check alone does not make an axis matter if another one does: `if (y >= height) return` is also
    /// written where the height is 1.
    pub fn grid_axes(&self) -> [bool; 3] {
        let grid = |set: AxisSet| [0, 1, 2].map(|axis| set & grid_axis(axis) != 0);
        if grid(self.used).contains(&true) { grid(self.used) } else { grid(self.used | self.compared) }
    }

    /// Returns the axes of the workgroup that matter.
    pub fn local_axes(&self) -> [bool; 3] {
        let all = self.used | self.compared;
        [0, 1, 2].map(|axis| all & local_axis(axis) != 0)
    }

    /// Returns true if the address of the access at a site depends on one of these axes, or is unknown.
    pub fn address_depends_on(&self, site: u32, axes: AxisSet) -> bool {
        self.addresses.get(&site).is_none_or(|own| own & axes != 0)
    }
}

/// Returns true if every workgroup does the same: the code reads no position in the grid and no result of an atomic
/// that workgroups share.
///
/// Such a shader is written for one workgroup.
pub(crate) fn repeats_in_each_workgroup(module: &SpirvModule) -> bool {
    let is_position = |id: &u32| {
        matches!(
            module.decorations_of(*id).built_in,
            Some(BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups | BuiltIn::GlobalInvocationId)
        )
    };
    let mut shared_results = BTreeSet::new();
    for function in module.functions.values() {
        for one in function.code.iter().filter(|one| one.result != 0) {
            let SpirvOperation::Atomic(access) = module.operation(one) else { continue };
            let ty =
                function.types.get(&access.pointer).or_else(|| module.variable_types.get(&access.pointer));
            let is_own = matches!(
                ty.and_then(|ty| module.types.get(ty)),
                Some(SpirvType::Pointer { class: StorageClass::Workgroup, .. })
            );
            shared_results.extend(Some(one.result).filter(|_| !is_own));
        }
    }
    let differs = |id: &u32| is_position(id) || shared_results.contains(id);
    let mut code = module.functions.values().flat_map(|function| &function.code);
    !code.any(|instruction| module.operands_of(instruction).iter().any(differs))
}

/// Sets of axes; an ordering comparison ends the flow.
struct AxisAnalysis;

impl Analysis for AxisAnalysis {
    type Fact = AxisSet;

    fn join(&self, first: AxisSet, second: AxisSet) -> AxisSet {
        first | second
    }

    fn built_in_facts(&self, built_in: BuiltIn) -> Option<Facts<AxisSet>> {
        let by_axis = |set: fn(usize) -> AxisSet| [set(0), set(1), set(2), set(2)];
        Some(match built_in {
            BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups => by_axis(grid_axis),
            BuiltIn::GlobalInvocationId => by_axis(|axis| grid_axis(axis) | local_axis(axis)),
            BuiltIn::LocalInvocationId => by_axis(local_axis),
            BuiltIn::LocalInvocationIndex | BuiltIn::SubgroupId | BuiltIn::SubgroupLocalInvocationId => {
                [LOCAL_AXES; COMPONENTS]
            }
            _ => return None,
        })
    }

    fn constant_fact(&self) -> AxisSet {
        0
    }

    fn load_fact(&self, _: Option<u32>, _: AxisSet) -> AxisSet {
        0
    }

    fn transfer(
        &self,
        instruction: &SpirvInstruction,
        _: &[u32],
        facts: &[Facts<AxisSet>],
    ) -> Facts<AxisSet> {
        if is_ordering(instruction.op) {
            return [0; COMPONENTS];
        }
        let joined = facts.iter().fold([0; COMPONENTS], |all, one| [0, 1, 2, 3].map(|at| all[at] | one[at]));
        if is_componentwise(instruction.op) { joined } else { [self.join_components(joined); COMPONENTS] }
    }
}
