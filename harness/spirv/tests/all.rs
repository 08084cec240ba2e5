//! Decoded instructions: their operands, and the positions of errors.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use arithmetic::Instruction;
use rspirv::spirv::{GlslStd450Op, Op};
use spirv_reader::{MemoryOperands, assemble_text, read_module, read_words, reduction_identity};

/// A function with these instructions between its label and its return.
fn function_text(code: &str) -> String {
    let head = "OpCapability Shader\n%glsl = OpExtInstImport \"GLSL.std.450\"\n\
         %other = OpExtInstImport \"Other\"\nOpMemoryModel Logical Vulkan\nOpEntryPoint GLCompute %main \"main\"\n\
         %void = OpTypeVoid\n%f = OpTypeFunction %void\n%u = OpTypeInt 32 0\n%c = OpConstant %u 1\n\
         %main = OpFunction %void None %f\n%start = OpLabel\n";
    format!("{head}{code}\nOpReturn\nOpFunctionEnd\n")
}

/// Returns the decoded instruction, with `%c` for the id of the constant.
fn decode_to_text(code: &str) -> String {
    let module = read_module(function_text(code).as_bytes()).unwrap();
    let function = module.functions.values().next().unwrap();
    let text = format!("{:?}", module.operation(&function.code[1]));
    text.replace(&module.id_by_name("c").unwrap().to_string(), "c")
}

/// The operands of each row have the names and the order of the specification.
#[test]
fn operands_have_names() {
    let table = [
        "%x = OpLoad %u %c MakePointerVisible|NonPrivatePointer %c",
        "OpStore %c %c Volatile|Aligned 4",
        "%x = OpAtomicCompareExchange %u %c %c %c %c %c %c",
        "%x = OpAtomicIIncrement %u %c %c %c",
        "OpControlBarrierArriveINTEL %c %c %c",
        "%x = OpGroupNonUniformIAdd %u %c ClusteredReduce %c %c",
        "%x = OpGroupNonUniformBallotBitCount %u %c InclusiveScan %c",
        "%x = OpPtrAccessChain %u %c %c %c",
        "%x = OpSDot %u %c %c PackedVectorFormat4x8Bit",
        "%x = OpExtInst %u %glsl UMin %c %c",
        "%x = OpExtInst %u %glsl Modf %c %c",
        "%x = OpSignBitSet %u %c",
        "%x = OpRayQueryProceedKHR %u %c",
        "OpEmitVertex",
    ];
    insta::assert_snapshot!(table.map(|code| format!("{code}\n    {}\n", decode_to_text(code))).concat());
}

/// Two masks of a copy are about the store and the load; one is about both.
#[test]
fn copies_have_operands_for_store_and_load() {
    let non_private = |code: &str| decode_to_text(code).matches("non_private: true").count();
    assert_eq!(non_private("OpCopyMemory %c %c NonPrivatePointer"), 2);
    assert_eq!(non_private("OpCopyMemory %c %c None NonPrivatePointer"), 1);
    let scoped = MemoryOperands { non_private: true, visible: Some(7), ..MemoryOperands::default() };
    assert_eq!(scoped.to_words(), [0x30, 7]);
    assert_eq!(MemoryOperands { available: Some(8), ..scoped }.to_words(), [0x38, 8, 7]);
    assert_eq!(MemoryOperands::default().to_words(), []);
}

/// The identities are those of the SPIR-V specification for each reduction.
#[test]
fn empty_reductions_have_the_identity() {
    let core = Instruction::Core;
    let extended = Instruction::Extended;
    for (instruction, identity) in [
        (core(Op::IAdd), 0),
        (core(Op::FAdd), 0),
        (core(Op::IMul), 1),
        (core(Op::FMul), 1.0_f32.to_bits()),
        (extended(GlslStd450Op::SMin), i32::MAX as u32),
        (extended(GlslStd450Op::UMin), u32::MAX),
        (extended(GlslStd450Op::FMin), f32::INFINITY.to_bits()),
        (extended(GlslStd450Op::SMax), i32::MIN as u32),
        (extended(GlslStd450Op::UMax), 0),
        (extended(GlslStd450Op::FMax), f32::NEG_INFINITY.to_bits()),
        (core(Op::BitwiseAnd), u32::MAX),
        (core(Op::BitwiseOr), 0),
        (core(Op::BitwiseXor), 0),
    ] {
        assert_eq!(reduction_identity(instruction, 32), identity.into(), "{instruction:?}");
    }
}

/// A missing operand is an error at the word of its instruction.
#[test]
fn missing_operands_have_a_place() {
    let mut words = assemble_text(&function_text("OpStore %c %c")).unwrap().words;
    let store = words.iter().position(|word| *word == 3 << 16 | Op::Store as u32).unwrap();
    words[store] = 2 << 16 | Op::Store as u32;
    words.remove(store + 2);
    let error = read_words(&words).unwrap_err();
    assert_eq!(error.to_string(), format!("word {store}: malformed module: OpStore lacks operand 1"));
}

/// An id is used only after its definition, except for labels, called functions and operands of `OpPhi`.
#[test]
fn definitions_precede_uses() {
    for (code, id) in [
        ("%x = OpAccessChain %u %x %c", "x"),
        ("%x = OpCopyObject %u %y\n%y = OpCopyObject %u %c", "y"),
        ("OpStore %c %c MakePointerAvailable %y\n%y = OpCopyObject %u %c", "y"),
        ("%x = OpCopyObject %y %c", "y"),
        ("OpBranchConditional %y %one %one\n%one = OpLabel\n%y = OpCopyObject %u %c", "y"),
        ("%x = OpFunctionCall %u %main %y\n%y = OpCopyObject %u %c", "y"),
    ] {
        let error = read_module(function_text(code).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("uses {id}, which is not defined before it")), "{code}: {error}");
    }
    let later = "OpBranch %loop\n%loop = OpLabel\n%x = OpPhi %u %c %start %y %more\nOpLoopMerge %end %more None\n\
                 OpBranch %more\n%more = OpLabel\n%y = OpFunctionCall %u %next\n\
                 OpBranchConditional %c %loop %end\n%end = OpLabel";
    let text = function_text(later)
        + "%next = OpFunction %u None %f\n%n = OpLabel\nOpReturnValue %c\nOpFunctionEnd\n";
    read_module(text.as_bytes()).unwrap();
}
