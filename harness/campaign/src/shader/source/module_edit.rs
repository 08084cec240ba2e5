//! Reads and changes binary modules word by word, without parsing them.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::spirv::{Decoration, ExecutionMode, Op, SourceLanguage, StorageClass};
use shader_source::scan::{is_identifier_character, words};

/// Number of words before the first instruction.
const HEADER_WORDS: usize = 5;

fn module_words(module: &[u8]) -> Vec<u32> {
    module.chunks_exact(4).filter_map(|word| word.try_into().ok()).map(u32::from_le_bytes).collect()
}

/// Returns the instructions of a module. The last one may be incomplete.
fn split_instructions(words: &[u32]) -> Vec<&[u32]> {
    let mut found = Vec::new();
    let mut rest = words.get(HEADER_WORDS..).unwrap_or_default();
    while let Some(first) = rest.first() {
        let Some((instruction, others)) = rest.split_at_checked((first >> 16).max(1) as usize) else {
            found.push(rest);
            break;
        };
        found.push(instruction);
        rest = others;
    }
    found
}

fn has_opcode(instruction: &[u32], opcode: Op) -> bool {
    instruction.first().is_some_and(|first| first & 0xffff == opcode as u32)
}

/// Returns true if two variables of a binary module have the same set and binding.
pub fn has_shared_binding(module: &[u8]) -> bool {
    let words = module_words(module);
    let mut places: BTreeMap<u32, [Option<u32>; 2]> = BTreeMap::new();
    for instruction in split_instructions(&words) {
        let [_, id, decoration, value] = instruction else { continue };
        if !has_opcode(instruction, Op::Decorate) {
            continue;
        }
        let [set, binding] = places.entry(*id).or_default();
        if *decoration == Decoration::DescriptorSet as u32 {
            *set = Some(*value);
        } else if *decoration == Decoration::Binding as u32 {
            *binding = Some(*value);
        }
    }
    let mut bound: Vec<_> = places.into_values().filter(|[_, binding]| binding.is_some()).collect();
    bound.sort_unstable();
    bound.windows(2).any(|two| matches!(two, [one, next] if one == next))
}

/// Returns the words of a string literal.
fn encode_literal(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    module_words(&bytes)
}

/// Returns a string literal and the number of its words.
fn read_literal(words: &[u32]) -> (String, usize) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), (end / 4 + 1).min(words.len()))
}

/// Replaces the string of each instruction with a `replacement`, which starts at `string_index`
/// among the words of instructions with this opcode.
fn replace_strings(
    module: &[u8],
    opcode: Op,
    string_index: usize,
    replacement: impl Fn(&str) -> Option<String>,
) -> Option<Vec<u8>> {
    let words = module_words(module);
    let mut changed = words.get(..HEADER_WORDS)?.to_vec();
    let mut is_changed = false;
    for instruction in split_instructions(&words) {
        let found =
            instruction.get(string_index..).filter(|_| has_opcode(instruction, opcode)).map(read_literal);
        let Some((text, (_, length))) = found.and_then(|found| Some((replacement(&found.0)?, found))) else {
            changed.extend(instruction);
            continue;
        };
        let literal = encode_literal(&text);
        let all =
            u32::try_from(instruction.len() - length + literal.len()).ok().filter(|all| *all < 1 << 16)?;
        changed.push(all << 16 | opcode as u32);
        changed.extend(&instruction[1..string_index]);
        changed.extend(literal);
        changed.extend(&instruction[string_index + length..]);
        is_changed = true;
    }
    is_changed.then(|| changed.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// Returns a module as tools read it that refuse debug lines or sizes by id: without debug information, and with the
/// numbers of `LocalSizeId`.
pub fn simplify_module(module: &[u8]) -> Vec<u8> {
    let words = module_words(module);
    let instructions = split_instructions(&words);
    let number = |id: u32| {
        instructions.iter().find_map(|one| match one {
            [_, _, result, number] if has_opcode(one, Op::Constant) && *result == id => Some(*number),
            _ => None,
        })
    };
    let is_debug_set = |one: &&&[u32]| {
        has_opcode(one, Op::ExtInstImport)
            && one.get(2..).is_some_and(|name| read_literal(name).0.starts_with("NonSemantic.Shader."))
    };
    let debug_sets: Vec<u32> =
        instructions.iter().filter(is_debug_set).filter_map(|one| one.get(1).copied()).collect();
    let debug_opcodes =
        [Op::Source, Op::SourceContinued, Op::SourceExtension, Op::Line, Op::NoLine, Op::ModuleProcessed];
    let mut changed = words.get(..HEADER_WORDS).unwrap_or_default().to_vec();
    for one in &instructions {
        let set_index = if has_opcode(one, Op::ExtInst) { 3 } else { 1 };
        let uses_debug_set = (has_opcode(one, Op::ExtInst) || has_opcode(one, Op::ExtInstImport))
            && one.get(set_index).is_some_and(|set| debug_sets.contains(set));
        match one {
            _ if uses_debug_set || debug_opcodes.iter().any(|opcode| has_opcode(one, *opcode)) => {}
            [first, entry, mode, ids @ ..]
                if has_opcode(one, Op::ExecutionModeId)
                    && *mode == ExecutionMode::LocalSizeId as u32
                    && ids.iter().all(|id| number(*id).is_some()) =>
            {
                let opcode = Op::ExecutionMode as u32;
                changed.extend([first & !0xffff | opcode, *entry, ExecutionMode::LocalSize as u32]);
                changed.extend(ids.iter().filter_map(|id| number(*id)));
            }
            _ => changed.extend(*one),
        }
    }
    changed.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a module whose source language is unknown: older tools refuse languages that they do not know.
pub fn without_source_language(module: &[u8]) -> Vec<u8> {
    let words = module_words(module);
    let mut changed = words.get(..HEADER_WORDS).unwrap_or_default().to_vec();
    for one in split_instructions(&words) {
        let start = changed.len();
        changed.extend(one);
        if has_opcode(one, Op::Source)
            && let Some(language) = changed.get_mut(start + 1)
        {
            *language = SourceLanguage::Unknown as u32;
        }
    }
    changed.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Renames a source file in the debug information of a module.
pub fn rename_source(module: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let new = |text: &str| (text == from).then(|| to.to_owned());
    replace_strings(&module, Op::String, 2, new).unwrap_or(module)
}

/// Renames the entry point of a module that has only one: some compilers call every entry point `main`.
pub fn rename_entry_point(module: Vec<u8>, name: &str) -> Vec<u8> {
    let words = module_words(&module);
    let entries = split_instructions(&words)
        .into_iter()
        .filter(|instruction| has_opcode(instruction, Op::EntryPoint))
        .count();
    if entries != 1 {
        return module;
    }
    let new = |text: &str| (text != name).then(|| name.to_owned());
    replace_strings(&module, Op::EntryPoint, 3, new).unwrap_or(module)
}

/// Names the arrays in local memory that kernels of OpenCL C declare; `plain` is the source without comments.
///
/// clspv keeps their order but not their names. One without a use has no variable; then none gets a name.
pub fn name_local_arrays(module: Vec<u8>, plain: &str) -> Vec<u8> {
    let module_words = module_words(&module);
    let instructions = split_instructions(&module_words);
    let lengths = specialization_results(&instructions);
    // Arrays of fixed length, and pointers to them. Others are arguments.
    let (mut arrays, mut variables) = (BTreeSet::new(), Vec::new());
    for instruction in &instructions {
        match instruction {
            [_, id, _, length] if has_opcode(instruction, Op::TypeArray) && !lengths.contains(length) => {
                arrays.insert(*id);
            }
            [_, id, _, pointee] if has_opcode(instruction, Op::TypePointer) && arrays.contains(pointee) => {
                arrays.insert(*id);
            }
            [_, ty, id, class, ..]
                if has_opcode(instruction, Op::Variable) && *class == StorageClass::Workgroup as u32 =>
            {
                variables.extend(arrays.contains(ty).then_some(*id));
            }
            _ => {}
        }
    }
    let names = local_arrays(plain);
    let is_annotation =
        |one: &&[u32]| [Op::Decorate, Op::MemberDecorate].iter().any(|op| has_opcode(one, *op));
    let Some(place) = instructions.iter().position(is_annotation).filter(|_| names.len() == variables.len())
    else {
        return module;
    };
    let mut changed = module_words[..HEADER_WORDS].to_vec();
    instructions[..place].iter().for_each(|one| changed.extend(*one));
    for (id, name) in variables.into_iter().zip(names) {
        let literal = encode_literal(name);
        changed.extend([(2 + literal.len() as u32) << 16 | Op::Name as u32, id]);
        changed.extend(literal);
    }
    instructions[place..].iter().for_each(|one| changed.extend(*one));
    changed.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the results of a module that a specialization id decorates.
fn specialization_results(instructions: &[&[u32]]) -> BTreeSet<u32> {
    let is_decorated =
        |one: &&&[u32]| has_opcode(one, Op::Decorate) && one.get(2) == Some(&(Decoration::SpecId as u32));
    instructions.iter().filter(is_decorated).filter_map(|one| one.get(1).copied()).collect()
}

/// Returns the names of arrays in local memory, in the order of their declarations.
fn local_arrays(plain: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = plain;
    while let Some(at) = rest.find("local") {
        let start = rest[..at].trim_end_matches("__");
        let is_word = !start.ends_with(is_identifier_character);
        rest = &rest[at + "local".len()..];
        let declaration = rest.split(';').next().unwrap_or_default();
        // Parameters are pointers.
        if !is_word || rest.starts_with(is_identifier_character) || declaration.contains(['*', ')', '{']) {
            continue;
        }
        for (declarator, _) in declaration.split(',').filter_map(|declarator| declarator.split_once('[')) {
            names.extend(words(declarator).last());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(instructions: &[(Op, &[u32], &str, &[u32])]) -> Vec<u8> {
        let mut words = vec![0x0723_0203, 0x0001_0500, 0, 10, 0];
        for (opcode, before, text, after) in instructions {
            let literal = encode_literal(text);
            words.push(((1 + before.len() + literal.len() + after.len()) as u32) << 16 | *opcode as u32);
            words.extend(before.iter().chain(&literal).chain(*after));
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn arrays_in_local_memory_are_declared() {
        let text = "void f(__local int *p, local float* q) {\n  __local int a[4][2], b[8];\n  local uint4 c; int is_local = 0;\n  int local_x; barrier(CLK_LOCAL_MEM_FENCE); __local struct s d [2];";
        assert_eq!(local_arrays(text), ["a", "b", "d"]);
    }

    #[test]
    fn sources_and_entry_points_are_renamed() {
        let old =
            [(Op::EntryPoint, &[5, 1][..], "main", &[2, 3][..]), (Op::String, &[4], "scratch/a.comp", &[])];
        let new = [(Op::EntryPoint, &[5, 1][..], "blur", &[2, 3][..]), (Op::String, &[4], "a.comp", &[])];
        let renamed = rename_source(module(&old), "scratch/a.comp", "a.comp");
        assert_eq!(rename_entry_point(renamed, "blur"), module(&new));
        assert_eq!(rename_source(module(&new), "other", "x"), module(&new));
    }
}
