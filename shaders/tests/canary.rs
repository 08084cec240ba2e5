//! The canary kernel: it shows whether a driver executes dispatches, and how often.

#[test]
fn the_kernels_keep_the_rules_of_modules() {
    use shaders::canary::{counting_kernel, counting_kernel_with_image, kernel};
    for kernel in [kernel(), counting_kernel(), counting_kernel_with_image()] {
        assert_eq!(kernel_oracle::check::check(&kernel).unwrap(), Vec::new());
    }
}

#[test]
fn a_tally_counts_repetitions() {
    let asked = 0x5ca1_ab1e;
    let repeats = |tally: u32| shaders::canary::is_repeated(&[asked, tally, asked, !asked], asked);
    for once in [0, 1, asked, asked.wrapping_mul(2), !asked, 0x9e37_79b1] {
        assert!(!repeats(once), "{once:#x}");
    }
    assert!((3..8).all(|times| repeats(asked.wrapping_mul(times))));
    assert!(!shaders::canary::is_repeated(&[], asked) && !shaders::canary::is_repeated(&[0; 4], 0));
}
