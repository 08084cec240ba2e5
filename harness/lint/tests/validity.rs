//! The validity rules, each with an instruction that breaks it, compared with `spirv-val`.

use std::fs;
use std::process::Command;

/// The start of a module; `#N` in its code is a constant.
const DECLARATIONS: &str = include_str!("validity.spvasm");
const CODE: &str = "%main = OpFunction %void None %function
%entry = OpLabel
%local = OpVariable %to_local Function
%p = OpAccessChain %to_u %x #0
";
const EXCHANGE: &str = "%l = OpAtomicCompareExchange %u %p #1";

/// Each rule reports its violation. `spirv-val`, where installed, refuses no module that breaks none; since 2026
/// it refuses the others.
#[test]
fn invalid_modules_break_named_rules() {
    let file = std::env::temp_dir().join(format!("validity-{}.spv", std::process::id()));
    let version = Command::new("spirv-val").arg("--version").output().ok();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let year = text.and_then(|text| text.split_once(" v")?.1.get(..4)?.parse::<u32>().ok());
    if year.is_none() {
        println!("skipped: spirv-val is not installed");
    }
    let rows = include_str!("validity.tsv").lines().skip(1);
    for columns in rows.map(|line| line.split('\t').collect::<Vec<_>>()) {
        let [code, rule, ref edits @ ..] = columns[..] else { panic!("two columns expected: {columns:?}") };
        let code = if code.starts_with("#0") { format!("{EXCHANGE} {code}") } else { code.to_owned() };
        let edited = |text: String, edit: &[&str]| {
            text.replace(&edit[0].replace("\\n", "\n"), &edit[1].replace("\\n", "\n"))
        };
        let head = edits.chunks(2).fold(DECLARATIONS.to_owned(), edited);
        let body = format!("{CODE}{code}\nOpReturn\nOpFunctionEnd\n");
        let numbers = body.split_whitespace().filter_map(|word| word.strip_prefix('#'));
        let numbers: std::collections::BTreeSet<&str> = numbers.collect();
        let constants = numbers.iter().map(|number| format!("%c{number} = OpConstant %u {number}\n"));
        let text = format!("{head}{}{}", constants.collect::<String>(), body.replace('#', "%c"));
        let module = spirv_reader::read_module(text.as_bytes()).unwrap();
        let uses = lint::invalid_uses(&module);
        let names: Vec<&str> = uses.iter().map(|one| one.rule.name()).collect();
        assert_eq!(names.is_empty(), rule.is_empty(), "{code}: {names:?}");
        assert!(rule.is_empty() || names.iter().any(|name| name.ends_with(rule)), "{code}: {names:?}");
        let Some(year) = year else { continue };
        fs::write(&file, module.words().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
            .unwrap();
        let mut command = Command::new("spirv-val");
        let output = command.args(["--target-env", "vulkan1.3"]).arg(&file).output().unwrap();
        let is_valid = output.status.success();
        assert!(is_valid || !rule.is_empty(), "{code}: {output:?}");
        assert!(!is_valid || rule.is_empty() || year < 2026, "{code}: {rule} is accepted");
    }
    // Not every run has written it.
    let _ = fs::remove_file(file);
}
