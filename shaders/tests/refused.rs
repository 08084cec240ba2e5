//! Modules with mistakes: each change breaks a rule of SPIR-V for Vulkan, and the check refuses the module
//! with that rule. A snapshot lists all changes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::common;

use std::fmt::Write;

use common::{LAVAPIPE, Validator};
use kernel_oracle::check::check;
use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{
    AddressingModel, Capability, Decoration, Dim, ExecutionModel, ImageFormat, ImageOperands, MemoryAccess,
    Op, StorageClass,
};
use shaders::KernelConfig;

/// The valid kernels to change.
const KERNELS: [(&str, &str, &str); 8] = [
    (
        "plain",
        "",
        "VULKAN plain { x = 0; }
P0@sg 0, wg 0, qf 0                                       ;
ld.atom.acq.dv.sc0.semsc0 r0, x                           ;
st.atom.rel.sg.sc0.semsc0 x, 3                            ;
rmw.atom.acq_rel.wg.sc0.semsc0.semav.semvis r1, x, 4      ;
rmw.atom.acq_rel.qf.sc0.semsc0.semav.semvis.add r2, x, 4  ;
rmw.atom.acq_rel.dv.sc0.semsc0.cas r2, x, 1, 2            ;
ld.vis.dv.sc0 r3, x                                       ;
st.av.dv.sc0 x, 5                                         ;
membar.acq_rel.dv.semsc0                                  ;
cbar.acq_rel.wg.semsc0 0                                  ;
exists (P0:r0 == 1)",
    ),
    (
        "old",
        "vulkan11",
        "VULKAN old { buffer u32 x = 0; }
P0@sg 0, wg 0, qf 0 ;
st.av.dv.sc0 x, 5   ;
exists (x == 1)",
    ),
    (
        "glsl",
        "glsl450",
        "VULKAN glsl { x = 0; f = 0; }
P0@sg 0, wg 0, qf 0            ;
st.av.dv.sc0 x, 5              ;
st.atom.rel.dv.sc0.semsc0 f, 1 ;
ld.vis.dv.sc0 r0, x            ;
membar.rel.dv.semsc0           ;
exists (P0:r0 == 1)",
    ),
    (
        "image",
        "",
        "VULKAN image { image u32 x = 0; }
P0@sg 0, wg 0, qf 0          ;
st.av.dv.sc2 x, 5            ;
ld.vis.dv.sc2 r0, x          ;
rmw.atom.dv.sc2.add r1, x, 4 ;
exists (P0:r0 == 1)",
    ),
    (
        "address",
        "",
        "VULKAN address { address u64 x = 0; }
P0@sg 0, wg 0, qf 0       ;
st.av.dv.sc0 x, 5         ;
ld.vis.dv.sc0 r0, x       ;
rmw.atom.dv.sc0.add r1, x, 4 ;
exists (P0:r0 == 1)",
    ),
    (
        "float",
        "",
        "VULKAN float { buffer f32 x = 0; buffer u8 y = 0; buffer u16 z = 0; }
P0@sg 0, wg 0, qf 0             ;
rmw.atom.dv.sc0.add r0, x, 4    ;
rmw.atom.dv.sc0.max r1, x, 4    ;
st.av.dv.sc0 y, 5               ;
st.av.dv.sc0 z, 5               ;
exists (P0:r0 == 1)",
    ),
    (
        "split",
        "",
        "VULKAN split { x = 0; }
P0@sg 0, wg 0, qf 0               ;
st.av.wg.sc0 x, 5                 ;
cbar.arrive.rel.wg.semsc0.semav 0 ;
cbar.wait.acq.wg.semsc0.semvis 0  ;
exists (x == 1)",
    ),
    (
        "select",
        "select",
        "VULKAN select { buffer u32 x = 0; workgroup u32 y = 0; }
P0@sg 0, wg 0, qf 0 ;
st.av.dv.sc0 x, 5   ;
st.av.wg.sc1 y, 5   ;
exists (x == 1)",
    ),
];

fn kernel(name: &str) -> shaders::CompiledKernel {
    let (_, variant, text) = KERNELS.iter().find(|(known, ..)| *known == name).unwrap();
    let test = litmus::parse(text, name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let config = KernelConfig { variant: variant.parse().unwrap(), ..LAVAPIPE };
    shaders::compile(&test, &config).unwrap()
}

/// A kernel to change.
struct BrokenModule(Module);

impl BrokenModule {
    fn from_kernel(name: &str) -> BrokenModule {
        BrokenModule(rspirv::dr::load_words(&kernel(name).words).unwrap())
    }

    fn new_id(&mut self) -> u32 {
        let header = self.0.header.as_mut().unwrap();
        header.bound += 1;
        header.bound - 1
    }

    fn instructions_mut(&mut self) -> impl Iterator<Item = &mut Instruction> {
        self.0.functions.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|block| &mut block.instructions)
    }

    /// Changes the instructions `op`; panics if there is none.
    fn change_all(&mut self, op: Op, mut change: impl FnMut(&mut Instruction)) -> &mut BrokenModule {
        let mut changed = 0;
        for instruction in self.instructions_mut().filter(|i| i.class.opcode == op) {
            change(instruction);
            changed += 1;
        }
        assert!(changed > 0, "no {op:?}");
        self
    }

    /// Replaces id operand `index` of every `op` by a constant.
    fn with_constant(mut self, op: Op, index: usize, value: u32) -> BrokenModule {
        let id = self.new_constant(value);
        self.change_all(op, |instruction| *instruction.operands[index].id_ref_any_mut().unwrap() = id);
        self
    }

    fn new_constant(&mut self, value: u32) -> u32 {
        let id = self.new_id();
        let is_word =
            |i: &&Instruction| i.class.opcode == Op::TypeInt && i.operands[0] == Operand::LiteralBit32(32);
        let ty = self.0.types_global_values.iter().find(is_word).unwrap().result_id;
        let at = self.0.types_global_values.iter().position(|i| i.result_id == ty).unwrap() + 1;
        let constant = Instruction::new(Op::Constant, ty, Some(id), vec![Operand::LiteralBit32(value)]);
        self.0.types_global_values.insert(at, constant);
        id
    }

    /// Replaces an operand that must be a constant by a computed value.
    fn with_computed(mut self, op: Op, index: usize) -> BrokenModule {
        let computed =
            self.instructions_mut().find(|i| i.class.opcode == Op::IMul).unwrap().result_id.unwrap();
        self.change_all(op, |instruction| *instruction.operands[index].id_ref_any_mut().unwrap() = computed);
        self
    }

    fn without_capability(mut self, capability: Capability) -> BrokenModule {
        let before = self.0.capabilities.len();
        self.0.capabilities.retain(|i| i.operands[0] != Operand::Capability(capability));
        assert!(self.0.capabilities.len() < before, "no {capability:?}");
        self
    }

    fn with_capability(mut self, capability: Capability) -> BrokenModule {
        let operands = vec![Operand::Capability(capability)];
        self.0.capabilities.push(Instruction::new(Op::Capability, None, None, operands));
        self
    }

    fn without_extensions(mut self) -> BrokenModule {
        assert!(!self.0.extensions.is_empty());
        self.0.extensions.clear();
        self
    }

    /// Removes the memory operands of plain accesses, or replaces their bits.
    fn with_memory_operands(
        mut self,
        op: Op,
        change: impl Fn(MemoryAccess) -> Option<MemoryAccess>,
    ) -> BrokenModule {
        self.change_all(op, |instruction| {
            let found = instruction.operands.iter().position(|o| matches!(o, Operand::MemoryAccess(_)));
            let Some(position) = found else { return };
            let Operand::MemoryAccess(bits) = instruction.operands[position] else { return };
            // Those of salts have no scope.
            if bits.contains(MemoryAccess::NONTEMPORAL) {
                return;
            }
            match change(bits) {
                Some(bits) => instruction.operands[position] = Operand::MemoryAccess(bits),
                None => instruction.operands.truncate(position),
            }
        });
        self
    }

    fn with_image_operands(mut self, op: Op, bits: ImageOperands) -> BrokenModule {
        self.change_all(op, |instruction| {
            for operand in &mut instruction.operands {
                if let Operand::ImageOperands(found) = operand {
                    *found = bits;
                }
            }
        });
        self
    }

    fn with_declaration(mut self, op: Op, change: impl Fn(&mut Instruction)) -> BrokenModule {
        let found = self.0.types_global_values.iter_mut().find(|i| i.class.opcode == op);
        change(found.unwrap_or_else(|| panic!("no {op:?}")));
        self
    }

    fn without_decoration(mut self, decoration: Decoration) -> BrokenModule {
        let is = |i: &Instruction| i.operands.contains(&Operand::Decoration(decoration));
        assert!(self.0.annotations.iter().any(is));
        self.0.annotations.retain(|i| !is(i));
        self
    }

    fn with_decoration(mut self, op: Op, decoration: Decoration) -> BrokenModule {
        let target = self.0.types_global_values.iter().find(|i| i.class.opcode == op).unwrap().result_id;
        let operands = vec![Operand::IdRef(target.unwrap()), Operand::Decoration(decoration)];
        self.0.annotations.push(Instruction::new(Op::Decorate, None, None, operands));
        self
    }

    /// Changes the opcode of instructions.
    fn with_opcode(mut self, from: Op, to: Op) -> BrokenModule {
        self.change_all(from, |instruction| {
            let operands = instruction.operands.clone();
            *instruction = Instruction::new(to, instruction.result_type, instruction.result_id, operands);
        });
        self
    }

    fn with_module(mut self, change: impl Fn(&mut Module)) -> BrokenModule {
        change(&mut self.0);
        self
    }
}

const ARRIVE: Op = Op::ControlBarrierArriveINTEL;
const WAIT: Op = Op::ControlBarrierWaitINTEL;

/// Returns each change with its name.
fn bad_modules() -> Vec<(&'static str, BrokenModule)> {
    let plain = || BrokenModule::from_kernel("plain");
    let split = || BrokenModule::from_kernel("split");
    let glsl = || BrokenModule::from_kernel("glsl");
    let image = || BrokenModule::from_kernel("image");
    let address = || BrokenModule::from_kernel("address");
    let float = || BrokenModule::from_kernel("float");
    let replace = |bits: MemoryAccess| move |_: MemoryAccess| Some(bits);
    let volatile = 0x8000;
    vec![
        // Memory semantics.
        ("relaxed load with a class", plain().with_constant(Op::AtomicLoad, 2, 0x40)),
        ("relaxed store with a class", plain().with_constant(Op::AtomicStore, 2, 0x40)),
        ("relaxed exchange with classes", plain().with_constant(Op::AtomicExchange, 2, 0x940)),
        ("relaxed addition with a class", plain().with_constant(Op::AtomicIAdd, 2, 0x100)),
        ("relaxed control barrier with a class", plain().with_constant(Op::ControlBarrier, 2, 0x40)),
        ("acquiring load without a class", plain().with_constant(Op::AtomicLoad, 2, 0x2)),
        ("releasing store without a class", plain().with_constant(Op::AtomicStore, 2, 0x4)),
        ("ordered exchange without a class", plain().with_constant(Op::AtomicExchange, 2, 0x8)),
        ("ordered barrier without a class", plain().with_constant(Op::MemoryBarrier, 1, 0x8)),
        ("ordered control barrier without a class", plain().with_constant(Op::ControlBarrier, 2, 0x8)),
        ("load of subgroup memory", plain().with_constant(Op::AtomicLoad, 2, 0x82)),
        ("load of cross-workgroup memory", plain().with_constant(Op::AtomicLoad, 2, 0x202)),
        ("load of atomic counters", plain().with_constant(Op::AtomicLoad, 2, 0x402)),
        ("releasing load", plain().with_constant(Op::AtomicLoad, 2, 0x44)),
        ("acquire-release load", plain().with_constant(Op::AtomicLoad, 2, 0x48)),
        ("acquiring store", plain().with_constant(Op::AtomicStore, 2, 0x42)),
        ("acquire-release store", plain().with_constant(Op::AtomicStore, 2, 0x48)),
        ("sequentially consistent load", plain().with_constant(Op::AtomicLoad, 2, 0x50)),
        ("sequentially consistent exchange", plain().with_constant(Op::AtomicExchange, 2, 0x50)),
        ("sequentially consistent barrier", plain().with_constant(Op::MemoryBarrier, 1, 0x50)),
        ("acquire and release bits", plain().with_constant(Op::AtomicExchange, 2, 0x46)),
        ("acquire and acquire-release bits", plain().with_constant(Op::AtomicExchange, 2, 0x4a)),
        ("available without release", plain().with_constant(Op::AtomicExchange, 2, 0x2042)),
        ("available on a load", plain().with_constant(Op::AtomicLoad, 2, 0x2042)),
        ("visible without acquire", plain().with_constant(Op::AtomicExchange, 2, 0x4044)),
        ("visible on a store", plain().with_constant(Op::AtomicStore, 2, 0x4044)),
        ("available relaxed barrier", plain().with_constant(Op::ControlBarrier, 2, 0x2000)),
        ("relaxed memory barrier", plain().with_constant(Op::MemoryBarrier, 1, 0)),
        ("volatile memory barrier", plain().with_constant(Op::MemoryBarrier, 1, 0x48 | volatile)),
        ("volatile control barrier", plain().with_constant(Op::ControlBarrier, 2, 0x48 | volatile)),
        ("computed semantics", plain().with_computed(Op::AtomicLoad, 2)),
        ("computed semantics of a barrier", plain().with_computed(Op::MemoryBarrier, 1)),
        // Compare-exchange.
        ("failure releases", plain().with_constant(Op::AtomicCompareExchange, 3, 0x44)),
        ("failure acquires and releases", plain().with_constant(Op::AtomicCompareExchange, 3, 0x48)),
        (
            "failure stronger than success",
            plain().with_constant(Op::AtomicCompareExchange, 2, 0x44).with_constant(
                Op::AtomicCompareExchange,
                3,
                0x42,
            ),
        ),
        ("failure with another class", plain().with_constant(Op::AtomicCompareExchange, 3, 0x842)),
        ("failure with visibility of its own", plain().with_constant(Op::AtomicCompareExchange, 3, 0x4042)),
        ("volatile success", plain().with_constant(Op::AtomicCompareExchange, 2, 0x48 | volatile)),
        ("volatile failure", plain().with_constant(Op::AtomicCompareExchange, 3, volatile)),
        // Scopes.
        ("CrossDevice scope", plain().with_constant(Op::AtomicLoad, 1, 0)),
        ("ShaderCall scope", plain().with_constant(Op::AtomicLoad, 1, 6)),
        ("scope of no name", plain().with_constant(Op::AtomicStore, 1, 77)),
        ("CrossDevice barrier", plain().with_constant(Op::MemoryBarrier, 0, 0)),
        ("order at invocation scope", plain().with_constant(Op::AtomicExchange, 1, 4)),
        ("memory barrier of an invocation", plain().with_constant(Op::MemoryBarrier, 0, 4)),
        ("computed scope", plain().with_computed(Op::AtomicLoad, 1)),
        ("execution scope Device", plain().with_constant(Op::ControlBarrier, 0, 1)),
        ("execution scope QueueFamily", plain().with_constant(Op::ControlBarrier, 0, 5)),
        ("execution scope Invocation", plain().with_constant(Op::ControlBarrier, 0, 4)),
        (
            "CrossDevice visibility of a load",
            plain().with_module(|module| {
                let zero = module
                    .types_global_values
                    .iter()
                    .find(|i| i.class.opcode == Op::Constant && i.operands[0] == Operand::LiteralBit32(0));
                let zero = zero.unwrap().result_id.unwrap();
                for instruction in module.functions[0].blocks.iter_mut().flat_map(|b| &mut b.instructions) {
                    if instruction.class.opcode == Op::Load {
                        for operand in &mut instruction.operands {
                            if let Operand::IdScope(scope) = operand {
                                *scope = zero;
                            }
                        }
                    }
                }
            }),
        ),
        (
            "Device scope without its capability",
            plain().without_capability(Capability::VulkanMemoryModelDeviceScope),
        ),
        ("Subgroup scope without its capability", plain().without_capability(Capability::GroupNonUniform)),
        ("QueueFamily scope under GLSL450", glsl().with_constant(Op::AtomicStore, 1, 5)),
        // The memory model.
        ("model without its capability", plain().without_capability(Capability::VulkanMemoryModel)),
        ("capability without the model", glsl().with_capability(Capability::VulkanMemoryModel)),
        (
            "Device scope's capability under GLSL450",
            glsl().with_capability(Capability::VulkanMemoryModelDeviceScope),
        ),
        ("model of an extension that is not named", BrokenModule::from_kernel("old").without_extensions()),
        ("availability under GLSL450", glsl().with_constant(Op::AtomicStore, 2, 0x2044)),
        ("volatile semantics under GLSL450", glsl().with_constant(Op::AtomicStore, 2, 0x44 | volatile)),
        ("output memory under GLSL450", glsl().with_constant(Op::MemoryBarrier, 1, 0x1004)),
        ("coherent variable", plain().with_decoration(Op::Variable, Decoration::Coherent)),
        ("volatile variable", plain().with_decoration(Op::Variable, Decoration::Volatile)),
        (
            "physical addressing",
            plain().with_module(|module| {
                let model = module.memory_model.as_mut().unwrap();
                model.operands[0] = Operand::AddressingModel(AddressingModel::Physical64);
            }),
        ),
        (
            "addresses without their capability",
            address().without_capability(Capability::PhysicalStorageBufferAddresses),
        ),
        // Plain accesses.
        (
            "load makes available",
            plain().with_memory_operands(
                Op::Load,
                replace(MemoryAccess::MAKE_POINTER_AVAILABLE | MemoryAccess::NON_PRIVATE_POINTER),
            ),
        ),
        (
            "store makes visible",
            plain().with_memory_operands(
                Op::Store,
                replace(MemoryAccess::MAKE_POINTER_VISIBLE | MemoryAccess::NON_PRIVATE_POINTER),
            ),
        ),
        (
            "visibility of a private load",
            plain().with_memory_operands(Op::Load, replace(MemoryAccess::MAKE_POINTER_VISIBLE)),
        ),
        (
            "availability of a private store",
            plain().with_memory_operands(Op::Store, replace(MemoryAccess::MAKE_POINTER_AVAILABLE)),
        ),
        (
            "non-private parameter",
            plain().with_module(|module| {
                let instructions = module.functions[0].blocks.iter_mut().flat_map(|b| &mut b.instructions);
                for instruction in
                    instructions.filter(|i| i.class.opcode == Op::Load && i.operands.len() == 1).take(3)
                {
                    instruction.operands.push(Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER));
                }
            }),
        ),
        (
            "non-private access under GLSL450",
            glsl().with_module(|module| {
                for instruction in module.functions[0].blocks.iter_mut().flat_map(|b| &mut b.instructions) {
                    if instruction.class.opcode == Op::Store {
                        instruction.operands.push(Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER));
                    }
                }
            }),
        ),
        ("address without an alignment", address().with_memory_operands(Op::Load, |_| None)),
        (
            "address with half its alignment",
            address().with_module(|module| {
                for instruction in module.functions[0].blocks.iter_mut().flat_map(|b| &mut b.instructions) {
                    if instruction.class.opcode == Op::Store {
                        for operand in &mut instruction.operands {
                            if *operand == Operand::LiteralBit32(8) {
                                *operand = Operand::LiteralBit32(4);
                            }
                        }
                    }
                }
            }),
        ),
        // Images.
        (
            "image read makes available",
            image().with_image_operands(
                Op::ImageRead,
                ImageOperands::MAKE_TEXEL_AVAILABLE | ImageOperands::NON_PRIVATE_TEXEL,
            ),
        ),
        (
            "image write makes visible",
            image().with_image_operands(
                Op::ImageWrite,
                ImageOperands::MAKE_TEXEL_VISIBLE | ImageOperands::NON_PRIVATE_TEXEL,
            ),
        ),
        (
            "visibility of a private texel",
            image().with_image_operands(Op::ImageRead, ImageOperands::MAKE_TEXEL_VISIBLE),
        ),
        (
            "availability of a private texel",
            image().with_image_operands(Op::ImageWrite, ImageOperands::MAKE_TEXEL_AVAILABLE),
        ),
        (
            "image without a format",
            image().with_declaration(Op::TypeImage, |ty| {
                ty.operands[6] = Operand::ImageFormat(ImageFormat::Unknown);
            }),
        ),
        (
            "atomic on a texel of 16 bits",
            image().with_declaration(Op::TypeImage, |ty| {
                ty.operands[6] = Operand::ImageFormat(ImageFormat::R16ui);
            }),
        ),
        (
            "one-dimensional image without its capability",
            image().with_declaration(Op::TypeImage, |ty| {
                ty.operands[1] = Operand::Dim(Dim::Dim1D);
            }),
        ),
        ("image without a binding", image().without_decoration(Decoration::Binding)),
        // Atomics.
        (
            "atomics of 8 bits",
            plain().with_declaration(Op::TypeInt, |ty| ty.operands[0] = Operand::LiteralBit32(8)),
        ),
        (
            "atomics of 16 bits",
            plain().with_declaration(Op::TypeInt, |ty| ty.operands[0] = Operand::LiteralBit32(16)),
        ),
        (
            "atomics of 64 bits without their capability",
            address().without_capability(Capability::Int64Atomics),
        ),
        (
            "floating-point addition without its capability",
            float().without_capability(Capability::AtomicFloat32AddEXT),
        ),
        (
            "floating-point maximum without its capability",
            float().without_capability(Capability::AtomicFloat32MinMaxEXT),
        ),
        ("floating-point atomics without their extensions", float().without_extensions()),
        ("bitwise atomic on a float", float().with_opcode(Op::AtomicFAddEXT, Op::AtomicOr)),
        (
            "atomic on a parameter",
            plain().with_module(|module| {
                let types = &mut module.types_global_values;
                for ty in types.iter_mut().filter(|i| i.class.opcode == Op::TypePointer) {
                    if ty.operands[0] == Operand::StorageClass(StorageClass::StorageBuffer) {
                        ty.operands[0] = Operand::StorageClass(StorageClass::PushConstant);
                    }
                }
            }),
        ),
        (
            "weak compare-exchange",
            plain().with_opcode(Op::AtomicCompareExchange, Op::AtomicCompareExchangeWeak),
        ),
        // Declarations.
        ("64 bits without their capability", address().without_capability(Capability::Int64)),
        ("8 bits without their capability", float().without_capability(Capability::Int8)),
        ("16 bits without their capability", float().without_capability(Capability::Int16)),
        (
            "8 bits in a buffer without their capability",
            float().without_capability(Capability::StorageBuffer8BitAccess),
        ),
        (
            "16 bits in a buffer without their capability",
            float().without_capability(Capability::StorageBuffer16BitAccess),
        ),
        (
            "chosen buffer pointer without its capability",
            BrokenModule::from_kernel("select").without_capability(Capability::VariablePointersStorageBuffer),
        ),
        (
            "chosen workgroup pointer without its capability",
            BrokenModule::from_kernel("select").without_capability(Capability::VariablePointers),
        ),
        ("buffer without a binding", plain().without_decoration(Decoration::Binding)),
        ("buffer without a set", plain().without_decoration(Decoration::DescriptorSet)),
        ("buffer without a block", plain().without_decoration(Decoration::Block)),
        ("members without offsets", plain().without_decoration(Decoration::Offset)),
        ("arrays without a stride", plain().without_decoration(Decoration::ArrayStride)),
        (
            "entry point that lists nothing",
            plain().with_module(|module| module.entry_points[0].operands.truncate(3)),
        ),
        (
            "entry point of SPIR-V 1.3 that lists a buffer",
            BrokenModule::from_kernel("old").with_module(|module| {
                let buffer = module.types_global_values.iter().find(|i| {
                    i.operands.first() == Some(&Operand::StorageClass(StorageClass::StorageBuffer))
                        && i.class.opcode == Op::Variable
                });
                let buffer = buffer.unwrap().result_id.unwrap();
                module.entry_points[0].operands.push(Operand::IdRef(buffer));
            }),
        ),
        (
            "vertex shader with the size of a workgroup",
            plain().with_module(|module| {
                module.entry_points[0].operands[0] = Operand::ExecutionModel(ExecutionModel::Vertex);
            }),
        ),
        (
            "kernel of OpenCL",
            plain().with_module(|module| {
                module.entry_points[0].operands[0] = Operand::ExecutionModel(ExecutionModel::Kernel);
            }),
        ),
        (
            "workgroup of nobody",
            plain().with_module(|module| {
                module.execution_modes[0].operands[2] = Operand::LiteralBit32(0);
            }),
        ),
        // Split barriers.
        ("arrival that acquires", split().with_constant(ARRIVE, 2, 0x42)),
        ("arrival that acquires and releases", split().with_constant(ARRIVE, 2, 0x48)),
        ("wait that releases", split().with_constant(WAIT, 2, 0x44)),
        ("wait that acquires and releases", split().with_constant(WAIT, 2, 0x48)),
        ("relaxed arrival with a class", split().with_constant(ARRIVE, 2, 0x40)),
        ("visible arrival", split().with_constant(ARRIVE, 2, 0x6044)),
        ("available wait", split().with_constant(WAIT, 2, 0x6042)),
        ("volatile arrival", split().with_constant(ARRIVE, 2, 0x44 | volatile)),
        ("arrival of a device", split().with_constant(ARRIVE, 0, 1)),
        ("wait of a queue family", split().with_constant(WAIT, 0, 5)),
        ("arrival of a subgroup and wait of a workgroup", split().with_constant(ARRIVE, 0, 3)),
        ("split barrier without its capability", split().without_capability(Capability::SplitBarrierINTEL)),
        ("split barrier without its extension", split().without_extensions()),
        ("two arrivals", split().with_opcode(WAIT, ARRIVE)),
        ("two waits", split().with_opcode(ARRIVE, WAIT)),
        (
            "wait before its arrival",
            split().with_module(|module| {
                let blocks = &mut module.functions[0].blocks;
                let instructions = blocks.iter_mut().flat_map(|block| &mut block.instructions);
                for instruction in instructions {
                    let turned = match instruction.class.opcode {
                        ARRIVE => WAIT,
                        WAIT => ARRIVE,
                        _ => continue,
                    };
                    let mut operands = instruction.operands.clone();
                    operands.truncate(3);
                    *instruction = Instruction::new(turned, None, None, operands);
                }
            }),
        ),
        // Control flow.
        (
            "control barrier in a case",
            plain().with_module(|module| {
                let blocks = &mut module.functions[0].blocks;
                let (mut found, mut first_case) = (None, None);
                for (index, block) in blocks.iter_mut().enumerate() {
                    if let Some(at) =
                        block.instructions.iter().position(|i| i.class.opcode == Op::ControlBarrier)
                    {
                        found = Some(block.instructions.remove(at));
                    }
                    if block.instructions.iter().any(|i| i.class.opcode == Op::AtomicLoad) {
                        first_case = Some(index);
                    }
                }
                let last_case = blocks
                    .iter()
                    .position(|b| b.instructions.iter().any(|i| i.class.opcode == Op::AtomicCompareExchange));
                let case = last_case.or(first_case).unwrap();
                blocks[case].instructions.insert(0, found.unwrap());
            }),
        ),
        ("remainder of another kind", plain().with_opcode(Op::UMod, Op::SMod)),
    ]
}

#[test]
fn kernels_before_the_change_are_clean() {
    let mut validator = Validator::new();
    for (name, ..) in KERNELS {
        let kernel = kernel(name);
        common::assert_clean(&kernel);
        validator.validate(name, &kernel);
    }
}

#[test]
fn bad_modules_are_refused_by_name() {
    let modules = bad_modules();
    assert!(modules.len() >= 75, "{} bad modules", modules.len());
    let mut table = String::new();
    for (name, BrokenModule(module)) in modules {
        let violations = check(&module.assemble()).unwrap();
        assert!(!violations.is_empty(), "`{name}` is accepted");
        let mut faults: Vec<String> =
            violations.iter().map(|v| format!("{:?}: {}", v.instruction, v.fault)).collect();
        faults.sort();
        faults.dedup();
        writeln!(table, "{name}").unwrap();
        for fault in faults {
            writeln!(table, "    {fault}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
