struct Passed { @builtin(position) at: vec4f, @location(0) colour: vec3f }
@vertex
fn place(@builtin(vertex_index) number: u32) -> Passed {
    return Passed(vec4f(f32(number), 0.0, 0.0, 1.0), vec3f(1.0));
}
@fragment
fn paint(passed: Passed, @builtin(front_facing) is_front: bool) -> @location(0) vec4f {
    return vec4f(passed.colour, select(0.5, 1.0, is_front));
}
