//! The five types of elements: i, s, d, c, z.

use tasuki::Pod;
use tasuki::collective::Complex;

/// An element of a matrix.
pub trait Element: Pod {
    /// The sum of two elements.
    fn plus(self, other: Self) -> Self;

    /// The size by which `amx` and `amn` compare: of a complex number |re| + |im|.
    fn size(self) -> f64;

    /// What decides between two elements of the same size: the sign; of a complex number the real part, then the
    /// imaginary part.
    fn sign(self) -> (f64, f64);
}

impl Element for i32 {
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    fn size(self) -> f64 {
        f64::from(self.unsigned_abs())
    }

    fn sign(self) -> (f64, f64) {
        (f64::from(self), 0.0)
    }
}

impl Element for f32 {
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    fn size(self) -> f64 {
        f64::from(self.abs())
    }

    fn sign(self) -> (f64, f64) {
        (f64::from(self), 0.0)
    }
}

impl Element for f64 {
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    fn size(self) -> f64 {
        self.abs()
    }

    fn sign(self) -> (f64, f64) {
        (self, 0.0)
    }
}

impl Element for Complex<f32> {
    fn plus(self, other: Complex<f32>) -> Complex<f32> {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }

    fn size(self) -> f64 {
        f64::from(self.re.abs() + self.im.abs())
    }

    fn sign(self) -> (f64, f64) {
        (f64::from(self.re), f64::from(self.im))
    }
}

impl Element for Complex<f64> {
    fn plus(self, other: Complex<f64>) -> Complex<f64> {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }

    fn size(self) -> f64 {
        self.re.abs() + self.im.abs()
    }

    fn sign(self) -> (f64, f64) {
        (self.re, self.im)
    }
}
