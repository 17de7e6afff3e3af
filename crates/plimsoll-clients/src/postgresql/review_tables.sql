-- What DVD Store 3 adds, with its names and columns.
CREATE TABLE membership (
    customerid INTEGER NOT NULL, membershiptype INTEGER NOT NULL, expiredate DATE NOT NULL
);
CREATE TABLE reviews (
    review_id SERIAL, prod_id INTEGER NOT NULL, review_date DATE NOT NULL, stars INTEGER NOT NULL,
    customerid INTEGER NOT NULL, review_summary VARCHAR(50) NOT NULL,
    review_text VARCHAR(1000) NOT NULL
);
CREATE TABLE reviews_helpfulness (
    review_helpfulness_id SERIAL, review_id INTEGER NOT NULL, customerid INTEGER NOT NULL,
    helpfulness INTEGER NOT NULL
);
