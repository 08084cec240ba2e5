//! Kernels with their answers: the first line of each module is the expected proof.

use prove::{ProofOptions, prove};

#[test]
fn kernels_have_the_proofs_of_their_first_lines() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let module = spirv_reader::read_module(text.as_bytes()).unwrap();
        let report = prove(&module, &ProofOptions::default());
        let reasons: Vec<String> = report.unproved.iter().map(|one| one.reason.to_string()).collect();
        let answer = match (report.is_proved, report.conditions.as_slice()) {
            (false, _) => format!("; not proved: {}", reasons.join("; ")),
            (true, []) => "; proved".to_owned(),
            (true, conditions) => format!("; proved if {}", conditions.join(" and ")),
        };
        if std::env::var("VK_LITMUS_BLESS").is_ok() {
            let rest = text
                .split_once('\n')
                .filter(|(first, _)| first.starts_with("; "))
                .map_or(&*text, |text| text.1);
            std::fs::write(&file, format!("{answer}\n{rest}")).unwrap();
            continue;
        }
        assert_eq!(Some(&*answer), text.lines().next(), "{}", file.display());
    }
}
