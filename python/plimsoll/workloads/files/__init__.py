"""Files and block devices under access specifications, as Iometer loads them."""
