// Lets links be followed where nothing else draws any, as what stands before this does.

export default function () {}
