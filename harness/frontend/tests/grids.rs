//! The walk over a whole grid against the model, which looks at every execution: on random small kernels both say the same.

use frontend::{Asking, Options, grid, grid::Verdict};
use litmus::Race;
use model::{Budget, Model};

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const HEADER: &str = "OpCapability Shader
OpCapability VulkanMemoryModel
OpMemoryModel Logical Vulkan
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 2 1 1
OpDecorate %array ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpDecorate %block Block
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
OpDecorate %id BuiltIn LocalInvocationIndex
%void = OpTypeVoid
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%array = OpTypeRuntimeArray %u32
%block = OpTypeStruct %array
%to_block = OpTypePointer StorageBuffer %block
%to_u32 = OpTypePointer StorageBuffer %u32
%2 = OpConstant %u32 2
%local = OpTypeArray %u32 %2
%to_local = OpTypePointer Workgroup %local
%to_shared = OpTypePointer Workgroup %u32
%to_input = OpTypePointer Input %u32
%function = OpTypeFunction %void
%0 = OpConstant %u32 0
%1 = OpConstant %u32 1
%3 = OpConstant %u32 3
%5 = OpConstant %u32 5
%66 = OpConstant %u32 66
%68 = OpConstant %u32 68
%72 = OpConstant %u32 72
%264 = OpConstant %u32 264
%328 = OpConstant %u32 328
%16450 = OpConstant %u32 16450
%8260 = OpConstant %u32 8260
%24648 = OpConstant %u32 24648
%24840 = OpConstant %u32 24840
%24904 = OpConstant %u32 24904
%data = OpVariable %to_block StorageBuffer
%shared = OpVariable %to_local Workgroup
%id = OpVariable %to_input Input
%main = OpFunction %void None %function
%entry = OpLabel
%me = OpLoad %u32 %id
%other = OpBitwiseXor %u32 %me %1
%d0 = OpAccessChain %to_u32 %data %0 %0
%d1 = OpAccessChain %to_u32 %data %0 %1
%dme = OpAccessChain %to_u32 %data %0 %me
%dother = OpAccessChain %to_u32 %data %0 %other
%s0 = OpAccessChain %to_shared %shared %0
%sme = OpAccessChain %to_shared %shared %me
%sother = OpAccessChain %to_shared %shared %other
";

/// Statements, some of them within a branch.
fn statements(random: &mut Random, count: usize, depth: u32, fresh: &mut u32, text: &mut String) {
    let places = ["%d0", "%d1", "%dme", "%dother", "%s0", "%sme", "%sother"];
    for _ in 0..count {
        *fresh += 1;
        let number = *fresh;
        let place = random.one_of(&places);
        // The scope of workgroups is 2, that of queue families 5, that of subgroups 3.
        let scope = random.one_of(&["%2", "%5", "%5", "%3"]);
        let line = match random.below(12) {
            0..3 => {
                let way = random.one_of(&["", "NonPrivatePointer", "NonPrivatePointer"]);
                let available = format!("NonPrivatePointer|MakePointerAvailable {scope}");
                let way = if random.below(2) == 0 { way } else { &available };
                format!("OpStore {place} %1 {way}\n")
            }
            3..6 => {
                let way = random.one_of(&["", "NonPrivatePointer", "NonPrivatePointer"]);
                let visible = format!("NonPrivatePointer|MakePointerVisible {scope}");
                let way = if random.below(2) == 0 { way } else { &visible };
                format!("%l{number} = OpLoad %u32 {place} {way}\n")
            }
            6 => format!(
                "%a{number} = OpAtomicIAdd %u32 {place} {scope} {} %1\n",
                random.one_of(&["%0", "%24648", "%24904", "%66"])
            ),
            7 => format!("OpAtomicStore {place} {scope} {} %1\n", random.one_of(&["%0", "%68", "%8260"])),
            8 | 9 if depth == 0 => {
                let semantics = random.one_of(&["%264", "%72", "%328", "%24840", "%24648", "%24904", "%0"]);
                let memory = random.one_of(&["%2", "%2", "%2", "%5"]);
                format!("OpControlBarrier %2 {memory} {semantics}\n")
            }
            10 => format!(
                "OpMemoryBarrier {} {}\n",
                random.one_of(&["%2", "%5"]),
                random.one_of(&["%264", "%72", "%328", "%24904"])
            ),
            11 if depth < 2 => {
                let condition = match random.below(2) {
                    0 => format!("%c{number} = OpIEqual %bool %me {}\n", random.one_of(&["%0", "%1"])),
                    _ => format!(
                        "%v{number} = OpAtomicLoad %u32 {place} {scope} {}\n%c{number} = OpINotEqual %bool %v{number} %0\n",
                        random.one_of(&["%0", "%66", "%16450"])
                    ),
                };
                let mut body = String::new();
                let inner = 1 + random.below(2);
                statements(random, inner, depth + 1, fresh, &mut body);
                format!(
                    "{condition}OpSelectionMerge %m{number} None\nOpBranchConditional %c{number} %t{number} %m{number}\n\
                     %t{number} = OpLabel\n{body}OpBranch %m{number}\n%m{number} = OpLabel\n"
                )
            }
            _ => String::new(),
        };
        text.push_str(&line);
    }
}

#[test]
fn walks_say_what_the_model_says() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let count: u64 =
        std::env::var("VK_LITMUS_RANDOM_KERNELS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let (mut racy, mut free, mut missed) = (0, 0, 0);
    for seed in 1..=count {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut text = HEADER.to_owned();
        let size = 2 + random.below(6);
        statements(&mut random, size, 0, &mut 100, &mut text);
        text.push_str("OpReturn\nOpFunctionEnd\n");
        let grid = Some([1 + random.below(2) as u32, 1, 1]);
        let options = Options { grid, subgroup_size: Some(1 + random.below(2) as u32), ..Options::default() };
        let module = frontend::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let walked = grid::walk(&module, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let lifted = frontend::lift(&module, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let asking = Asking { budget: Budget::default(), race: true, question: false, places: false };
        let answer = frontend::answer(&lifted, &model, &asking).unwrap();
        let found = walked.findings.iter().any(|found| {
            matches!(found.kind, frontend::FindingKind::Race | frontend::FindingKind::UnpublishedRead)
        });
        let body = text.split_once("%sother = OpAcc").map_or("", |(_, body)| body);
        match answer.race {
            Race::Racy => {
                racy += 1;
                // Where the order decides, the orders that are tried may miss it.
                missed += usize::from(!found && walked.ordered);
                assert!(found || walked.ordered, "seed {seed}: missed\n{options:?}\n{body}");
            }
            Race::Free => {
                free += 1;
                let words: Vec<&String> = walked.findings.iter().map(|found| &found.message).collect();
                assert!(!found, "seed {seed}: {words:#?}\n{options:?}\n{body}");
                assert_ne!(walked.verdict, Verdict::Undecided);
            }
            Race::Unknown => {}
        }
    }
    println!("{racy} racy, {free} free, {missed} missed where the order decides");
    assert!(racy > count as usize / 10 && free > count as usize / 20, "{racy} {free}");
    assert!(missed * 100 <= racy, "{missed} of {racy} missed");
}
