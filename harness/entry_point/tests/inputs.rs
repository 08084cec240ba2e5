//! Case files.

use entry_point::inputs::{parse_case_file, write_case_file};

/// A case file that is written and read again gives the same options, for each kind of input.
#[test]
fn case_files_round_trip() {
    let text = r#"
        entry = "main"
        grid = [2, 3, 1]
        subgroup_size = 8
        unroll = 3
        robustness = { storage = 2, uniform = 1, images = true }
        spec.7 = 5
        push = [{ offset = 4, u32 = [1, 2] }]
        input.1.f32 = [0.5, 2.0]
        buffer."0.1" = { bytes = 16, fill = "iota" }
        buffer."0.2" = { u8 = [1, 2, 3] }
        buffer."0.6[2]" = { u32 = [4, 5] }
        image."0.7[1]" = { size = [3], u32 = [6] }
        image."0.3" = { size = [4, 4], mips = 2, fill = "floats" }
        image."0.4" = { size = [2], u32 = [9, 8, 7, 6] }
        sampler."0.5" = { filter = "linear", edge = "mirror" }
        address.a = { at = "0.1@8", bytes = 8, fill = "zeros" }
    "#;
    let read = |text: &str| {
        let case = parse_case_file(text, &|name| Err(format!("{name} is not read")));
        case.unwrap_or_else(|error| panic!("{error:?} in {text}")).options
    };
    let options = read(text);
    let written = write_case_file(&options);
    assert_eq!(format!("{:?}", read(&written)), format!("{options:?}"), "{written}");
    let differs = |word: &str| !format!("{options:?}").contains(word);
    assert!(
        !["Mirror", "Bytes([9, 0, 0, 0", "unroll: Some(3)", "(0, 6, 2): [4, 0", "storage_buffers: Discarded"]
            .into_iter()
            .any(differs),
        "{options:?}"
    );
}

#[test]
fn elements_of_arrays_are_numbers() {
    for name in ["0.1[]", "0.1[x]", "0[1]", "0.1[2", "0.1[4294967296]"] {
        let text = format!("buffer.\"{name}\" = {{ bytes = 4 }}");
        let error = parse_case_file(&text, &|_| Ok(Vec::new())).unwrap_err();
        assert!(format!("{error:?}").contains("SET.BINDING[ELEMENT]"), "{name}: {error:?}");
    }
}
