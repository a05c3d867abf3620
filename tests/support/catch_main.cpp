int run_catch(int argc, char** argv);

int main(int argc, char** argv) { return run_catch(argc, argv); }
