//! Texel filtering.

use entry_point::inputs::{AddressMode, Sampler};

#[test]
fn samplers_weight_texels() {
    let nearest =
        |beyond, at| Sampler { is_linear: false, address_mode: beyond }.texel_weights(at, 0, 4)[0].0;
    assert_eq!([0.0, 0.3, 0.99, 1.1, -0.1].map(|at| nearest(AddressMode::Repeat, at)), [0, 1, 3, 0, 3]);
    assert_eq!([1.1, -0.1].map(|at| nearest(AddressMode::Clamp, at)), [3, 0]);
    assert_eq!([1.1, -0.1, -0.3, 1.3].map(|at| nearest(AddressMode::Mirror, at)), [3, 0, 1, 2]);
    let linear = Sampler { is_linear: true, address_mode: AddressMode::Clamp };
    for at in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300] {
        for beyond in [AddressMode::Repeat, AddressMode::Mirror, AddressMode::Clamp] {
            let [(one, _), (other, _)] =
                Sampler { is_linear: true, address_mode: beyond }.texel_weights(at, 7, 4);
            assert!(one < 4 && other < 4);
        }
    }
    assert_eq!(linear.texel_weights(0.375, 0, 4), [(1, 1.0), (2, 0.0)]);
    assert_eq!(linear.texel_weights(0.5, 0, 4), [(1, 0.5), (2, 0.5)]);
    assert_eq!(linear.texel_weights(0.0, 0, 4), [(0, 0.5), (0, 0.5)]);
}
